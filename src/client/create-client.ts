import type { ResolveAll } from '../contract/allowed-lookup.ts';
import type { Instance } from '../contract/instance.ts';
import type { CertificateSeen } from '../ports/certificates.ts';
import type { Clock } from '../ports/clock.ts';
import {
  configurationAnswerSchema,
  identifiedInstanceSchema,
  identifiedVolumeSchema,
  instanceAnswerSchema,
  restartStatusAnswerSchema,
  tokenAnswerSchema,
  volumeAnswerSchema,
  volumeLocationAnswerSchema,
  volumeUsageAnswerSchema,
} from './answers.ts';
import { parseBaseUrl } from './base-url.ts';
import { Caller } from './caller.ts';
import { type Credential, createBearerSource, type Token } from './credential.ts';
import { elementsOf, type OnProblem, type ReadAnswer, readAs, readOne } from './elements.ts';
import { type MarkedInstance, type OrchestratorClient, ProviderError } from './orchestrator-client.ts';
import { etagOf, hasMark, markOf, readCreated, readNothing } from './receive.ts';
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
  /** PEM certificates of the authority to trust. Default: those that Node trusts. */
  ca?: string | undefined;
}

/** Creates a client with its own connections. @throws {Error} for a base URL or a credential that cannot be used */
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
          ca: options.ca,
          resolve,
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
    ...instancesOf(caller, onProblem),
    ...volumesOf(caller, onProblem),
    close: () => transport.close(),
  };
}

type Operations<Name extends keyof OrchestratorClient> = Pick<OrchestratorClient, Name>;

function offersOf(
  caller: Caller,
  onProblem: OnProblem,
): Operations<'listConfigurations' | 'listAvailability'> {
  const read = elementsOf('configurations', configurationAnswerSchema, onProblem);
  return {
    listConfigurations: (options) => caller.call({ method: 'GET', path: ['configurations'] }, read, options),
    listAvailability: (region, options) =>
      caller.call({ method: 'GET', path: ['availability'], region }, read, options),
  };
}

function instancesOf(
  caller: Caller,
  onProblem: OnProblem,
): Operations<Extract<keyof OrchestratorClient, `${string}Instance${string}` | 'restartStatus'>> {
  const readOf = (id: string) => readOne(id, instanceAnswerSchema);
  const act =
    (action: string, ...prefix: string[]): OrchestratorClient['startInstance'] =>
    (id, region, options) => {
      const path = [...prefix, 'instances', id, action];
      return caller.call({ method: 'POST', path, region }, readOf(id), options);
    };
  return {
    listInstances: (options) => {
      const read = elementsOf('instances', identifiedInstanceSchema, onProblem);
      return caller.call({ method: 'GET', path: ['instances'] }, read, options);
    },
    createInstance: (body, idempotencyKey, options) =>
      caller.call(
        { method: 'POST', path: ['instances'], body, idempotencyKey },
        readAs(identifiedInstanceSchema, readCreated),
        options,
      ),
    getInstance: (id, region, options) =>
      caller.call({ method: 'GET', path: ['instances', id], region }, readOf(id), options),
    pollInstance: (id, region, mark, options) => {
      const ifNoneMatch = mark === null ? undefined : etagOf(mark);
      const request = { method: 'GET', path: ['instances', id], region, ifNoneMatch } as const;
      return caller.call(request, readUnlessMarked(mark, readOf(id)), options);
    },
    deleteInstance: (id, region, options) =>
      orGone(caller.call({ method: 'DELETE', path: ['instances', id], region }, readOf(id), options), null),
    startInstance: act('start'),
    stopInstance: act('stop'),
    restartInstance: act('restart', 'x'),
    restartStatus: (id, region, options) => {
      const request = { method: 'GET', path: ['x', 'instances', id, 'restart'], region } as const;
      return caller.call(request, readAs(restartStatusAnswerSchema), options);
    },
  };
}

function volumesOf(
  caller: Caller,
  onProblem: OnProblem,
): Operations<Extract<keyof OrchestratorClient, `${string}Volume${string}`>> {
  const readOf = (id: string) => readOne(id, volumeAnswerSchema);
  const change =
    (action: 'attach' | 'detach'): OrchestratorClient['attachVolume'] =>
    (id, instanceIds, options) => {
      const body = { instance_ids: instanceIds };
      return caller.call({ method: 'POST', path: ['volumes', id, action], body }, readOf(id), options);
    };
  return {
    listVolumeLocations: (options) => {
      const read = elementsOf('locations', volumeLocationAnswerSchema, onProblem);
      return caller.call({ method: 'GET', path: ['volumes', 'locations'] }, read, options);
    },
    createVolume: (body, idempotencyKey, options) =>
      caller.call(
        { method: 'POST', path: ['volumes'], body, idempotencyKey },
        readAs(identifiedVolumeSchema, readCreated),
        options,
      ),
    getVolume: (id, options) => caller.call({ method: 'GET', path: ['volumes', id] }, readOf(id), options),
    deleteVolume: (id, options) => {
      const deleting = caller.call({ method: 'DELETE', path: ['volumes', id] }, readNothing, options);
      return orGone(
        deleting.then(() => true),
        false,
      );
    },
    attachVolume: change('attach'),
    detachVolume: change('detach'),
    listVolumeUsage: (options) => {
      const read = elementsOf('volumes', volumeUsageAnswerSchema, onProblem);
      return caller.call({ method: 'GET', path: ['x', 'volumes', 'usage'] }, read, options);
    },
    resizeVolume: (id, sizeGb, options) => {
      const body = { size_gb: sizeGb };
      return caller.call({ method: 'POST', path: ['x', 'volumes', id, 'resize'], body }, readOf(id), options);
    },
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

/** For a delete, 404 counts as success (O: Instances, rule 3; Volumes). */
function orGone<T, Gone>(work: Promise<T>, gone: Gone): Promise<T | Gone> {
  return work.catch((error) => {
    if (error instanceof ProviderError && error.problem === 'not_found') return gone;
    throw error;
  });
}
