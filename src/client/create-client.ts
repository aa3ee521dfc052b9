import type { ResolveAll } from '../contract/allowed-lookup.ts';
import type { Changes } from '../contract/extensions.ts';
import type { Instance } from '../contract/instance.ts';
import type { CertificateSeen } from '../ports/certificates.ts';
import type { Clock } from '../ports/clock.ts';
import {
  changesAnswerSchema,
  configurationAnswerSchema,
  instanceAnswerSchema,
  restartStatusAnswerSchema,
  tokenAnswerSchema,
  volumeAnswerSchema,
  volumeLocationAnswerSchema,
} from './answers.ts';
import { parseBaseUrl } from './base-url.ts';
import { Caller } from './caller.ts';
import { type Credential, createBearerSource, type Token } from './credential.ts';
import { elementsOf, type OnProblem, type ReadAnswer, readAs, readOne } from './elements.ts';
import {
  type CallOptions,
  type ChangesOptions,
  type MarkedInstance,
  type OrchestratorClient,
  ProviderError,
} from './orchestrator-client.ts';
import { etagOf, hasMark, invalidAnswer, markOf, readNothing } from './receive.ts';
import { createFetchTransport, createWireTransport, type Fetch } from './transport.ts';

const MAX_BODY_BYTES = 8 * 1024 * 1024;
const CONNECTIONS = 32;

export interface ClientOptions {
  /** Includes the version prefix of its paths, such as `https://gpu.example/v1`. */
  baseUrl: string;
  credential: Credential;
  /** Whether private and loopback addresses, and plain http, are allowed. */
  allowPrivate: boolean;
  /** Limit for a whole call, including the wait for a free connection. */
  timeoutMs: number;
  clock: Clock;
  /** Maximum size of an answer. */
  maxBodyBytes?: number;
  /** Maximum number of connections. Further calls wait. */
  connections?: number;
  /** Calls an orchestrator in the same process instead of the address. */
  fetch?: Fetch;
  /** Resolves host names. Default: the system's resolver. */
  resolve?: ResolveAll;
  /** Called for each list element that was skipped as invalid. */
  onProblem?: OnProblem;
  /** Called with the certificate of the orchestrator. */
  certificateSeen?: CertificateSeen | undefined;
}

/**
 * Creates a client of one orchestrator that implements O:, with its own connections.
 * @throws {Error} for a base URL or a credential that cannot be used
 */
export function createClient(options: ClientOptions): OrchestratorClient {
  const { allowPrivate, timeoutMs, clock, fetch, resolve, onProblem = () => undefined } = options;
  const { maxBodyBytes = MAX_BODY_BYTES, connections = CONNECTIONS, credential } = options;
  const baseUrl = parseBaseUrl(options.baseUrl, { allowPrivate });
  // A failed connection must be reported before the call as a whole times out.
  const connectTimeoutMs = Math.max(1, Math.floor(timeoutMs / 2));
  const transport =
    fetch !== undefined
      ? createFetchTransport(fetch)
      : createWireTransport({
          allowPrivate,
          connectTimeoutMs,
          connections,
          clock,
          certificateSeen: options.certificateSeen,
          ...(resolve !== undefined && { resolve }),
        });
  const exchange = async (): Promise<Token> => {
    if (!('exchange' in credential)) throw new Error('there is nothing to exchange for a token');
    const request = { method: 'POST', path: ['auth', 'token'], body: credential.exchange } as const;
    const token = await caller.callWithoutBearer(request, readAs(tokenAnswerSchema));
    return { accessToken: token.access_token, expiresInMs: token.expires_in * 1000 };
  };
  const bearers = createBearerSource(credential, clock, exchange);
  const caller = new Caller({ baseUrl, transport, bearers, clock, timeoutMs, maxBodyBytes });
  return {
    ...offersOf(caller, onProblem),
    ...instancesOf(caller),
    ...volumesOf(caller, onProblem),
    ...changesOf(caller, timeoutMs),
    close,
  };

  function close(): Promise<void> {
    return transport.close();
  }
}

function offersOf(caller: Caller, onProblem: OnProblem) {
  const read = elementsOf('configurations', configurationAnswerSchema, onProblem);
  return {
    listConfigurations: (options?: CallOptions) =>
      caller.call({ method: 'GET', path: ['configurations'] }, read, options),
    listAvailability: (region?: string, options?: CallOptions) =>
      caller.call(
        { method: 'GET', path: ['availability'], ...(region !== undefined && { region }) },
        read,
        options,
      ),
  };
}

function instancesOf(caller: Caller) {
  const readNew = readAs(instanceAnswerSchema);
  const readOf = (id: string) => readOne(id, instanceAnswerSchema);
  const act = (action: 'start' | 'stop') => (id: string, region: string, options?: CallOptions) =>
    caller.call({ method: 'POST', path: ['instances', id, action], region }, readOf(id), options);
  return {
    /** A list with an unreadable element is refused as a whole: no decision is based on part of a list. */
    listInstances: (options?: CallOptions) =>
      caller.call(
        { method: 'GET', path: ['instances'] },
        elementsOf('instances', instanceAnswerSchema),
        options,
      ),
    createInstance: (body: object, idempotencyKey: string, options?: CallOptions) =>
      caller.call({ method: 'POST', path: ['instances'], body, idempotencyKey }, readNew, options),
    getInstance: (id: string, region: string, options?: CallOptions) =>
      caller.call({ method: 'GET', path: ['instances', id], region }, readOf(id), options),
    pollInstance: (id: string, region: string, mark: string | null, options?: CallOptions) =>
      caller.call(
        {
          method: 'GET',
          path: ['instances', id],
          region,
          ...(mark !== null && { ifNoneMatch: etagOf(mark) }),
        },
        readUnlessMarked(mark, readOf(id)),
        options,
      ),
    deleteInstance: (id: string, region: string, options?: CallOptions) =>
      orGone(caller.call({ method: 'DELETE', path: ['instances', id], region }, readOf(id), options), null),
    startInstance: act('start'),
    stopInstance: act('stop'),
    restartInstance: (id: string, region: string, options?: CallOptions) =>
      caller.call({ method: 'POST', path: ['x', 'instances', id, 'restart'], region }, readOf(id), options),
    restartStatus: (id: string, region: string, options?: CallOptions) =>
      caller.call(
        { method: 'GET', path: ['x', 'instances', id, 'restart'], region },
        readAs(restartStatusAnswerSchema),
        options,
      ),
  };
}

function volumesOf(caller: Caller, onProblem: OnProblem) {
  const readOf = (id: string) => readOne(id, volumeAnswerSchema);
  const change =
    (action: 'attach' | 'detach') => (id: string, instanceIds: readonly string[], options?: CallOptions) => {
      const body = { instance_ids: instanceIds };
      return caller.call({ method: 'POST', path: ['volumes', id, action], body }, readOf(id), options);
    };
  return {
    listVolumeLocations: (options?: CallOptions) =>
      caller.call(
        { method: 'GET', path: ['volumes', 'locations'] },
        elementsOf('locations', volumeLocationAnswerSchema, onProblem),
        options,
      ),
    createVolume: (body: object, idempotencyKey: string, options?: CallOptions) =>
      caller.call(
        { method: 'POST', path: ['volumes'], body, idempotencyKey },
        readAs(volumeAnswerSchema),
        options,
      ),
    getVolume: (id: string, options?: CallOptions) =>
      caller.call({ method: 'GET', path: ['volumes', id] }, readOf(id), options),
    deleteVolume: (id: string, options?: CallOptions) =>
      orGone(
        caller.call({ method: 'DELETE', path: ['volumes', id] }, readNothing, options).then(() => true),
        false,
      ),
    attachVolume: change('attach'),
    detachVolume: change('detach'),
    resizeVolume: (id: string, sizeGb: number, options?: CallOptions) =>
      caller.call(
        { method: 'POST', path: ['x', 'volumes', id, 'resize'], body: { size_gb: sizeGb } },
        readOf(id),
        options,
      ),
  };
}

function readUnlessMarked(
  mark: string | null,
  read: ReadAnswer<Instance>,
): ReadAnswer<MarkedInstance | 'unchanged'> {
  return (call, answer) => {
    if (mark !== null && hasMark(mark, answer)) return 'unchanged';
    return { instance: read(call, answer), mark: markOf(answer) };
  };
}

function changesOf(caller: Caller, callTimeoutMs: number) {
  return {
    listChanges: (
      since: string | null,
      { timeoutMs = callTimeoutMs, waitMs = 0, signal }: ChangesOptions = {},
    ) => {
      const query = {
        ...(since !== null && { since }),
        ...(waitMs > 0 && { wait_s: String(waitMs / 1000) }),
      };
      return caller.call({ method: 'GET', path: ['x', 'changes'], query }, readChanges(since), {
        timeoutMs: timeoutMs + waitMs,
        signal,
      });
    },
  };
}

/** An answer for another cursor would skip the changes between the two. */
function readChanges(since: string | null): ReadAnswer<Changes> {
  const read = readAs(changesAnswerSchema);
  return (call, answer) => {
    const changes = read(call, answer);
    if ((changes.since ?? null) !== since || (since === null && !changes.reset))
      throw invalidAnswer(call, answer.status, 'expected the changes since the sent cursor');
    return changes;
  };
}

/** For a delete, 404 counts as success (O: Instances, rule 3; Volumes). */
async function orGone<T, Gone>(work: Promise<T>, gone: Gone): Promise<T | Gone> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ProviderError && error.problem === 'not_found') return gone;
    throw error;
  }
}
