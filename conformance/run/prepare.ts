import { suiteVersion } from '../contract/package.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { type Identity, type PlainSource, plainSourceOf } from '../http/identity.ts';
import { identityOf } from '../http/plain-identity.ts';
import { withoutUsername } from '../http/sign-in.ts';
import { paceOf, TargetClient } from '../http/target-client.ts';
import { Budget } from '../resources/budget.ts';
import { cleanUp } from '../resources/clean-up.ts';
import { keyFingerprintOf, Ledger, toRecord } from '../resources/ledger.ts';
import { lookForStrays } from '../resources/presence.ts';
import { READ_AGAIN_MS, readAgain } from '../resources/read-again.ts';
import { Resources } from '../resources/resources.ts';
import { lookForUnexplained } from '../scenarios/instances/strays.ts';
import { searchesLikeMarketplace } from '../scenarios/plain/order.ts';
import { Session, type SessionParts } from '../scenarios/session.ts';
import { KeyRing } from '../ssh/key-ring.ts';
import { isPrivateBaseUrl } from '../ssh/private-addresses.ts';
import type { SshClient } from '../ssh/ssh-client.ts';
import { createRedactor, type Redactor } from '../text/redact.ts';
import { requestLabel } from '../transcript/draws.ts';
import type { RunSettings, TranscriptRecord } from '../transcript/records.ts';
import { Transcript } from '../transcript/transcript.ts';
import type { KnownReasons } from '../waiting/wait-limiter.ts';
import type { RunOptions, RunParts } from './options.ts';

const CONNECT_TIMEOUT_MS = 30_000;
const ROUND_TRIPS = 3;
const MS_PER_MINUTE = 60_000;

export interface Prepared {
  session: Session;
  transcript: Transcript;
  client: TargetClient;
  /** Searches for the results of unclear creates, outside of scenarios. */
  lookForStrays(signal: AbortSignal): Promise<void>;
  /** Destroys all open entries, and closes the ledger once none are left. */
  cleanUp(): Promise<void>;
}

/** Assembles a run and writes its first records. Only opens TCP connections to the target. */
export async function prepare(options: RunOptions, parts: RunParts, signal: AbortSignal): Promise<Prepared> {
  const { baseUrl, apiKey, login, secondApiKey, otherAccountKey } = options;
  const { clock, runId, onEvent } = parts;
  const settings = settingsOf(options, parts);
  const plain = plainSourceOf({ seed: parts.draws.seed, settings });
  const identity = identityOf(runId, plain);
  const redactor = redactorFor(options);
  const keys = keyRing(parts.ssh, identity, redactor);
  const transcript = new Transcript({
    redact: (record) => redactor.value(withoutUsername(record, login)) as TranscriptRecord,
    sink: parts.sink,
    onRecord: (record) => onEvent?.({ event: 'record', record }),
  });
  const client = new TargetClient({
    transport: parts.transport,
    clock,
    transcript,
    baseUrl,
    identity,
    requestId: (n) => parts.draws.uuid(requestLabel(n)),
    apiKey,
    login,
    secondApiKey,
    otherAccountKey,
    ...(plain !== undefined
      ? { paceMs: 0, repeatsReads: false }
      : { paceMs: paceOf(settings.pollIntervalMs) }),
    onSecret: (name, secret) => redactor.add(name, secret),
    onSilence: (text) => onEvent?.({ event: 'notice', text }),
  });
  await recordStart(options, parts, { transcript, identity, settings, plain });
  const ledger = new Ledger({
    file: parts.ledgerFile,
    runId,
    names: identity,
    wall: () => clock.wall(),
    onChange: (entry) => {
      transcript.add(toRecord(entry, client.now()));
      onEvent?.({ event: 'resource', entry: { ...entry } });
    },
  });
  const knownReasons: KnownReasons = new Set();
  const shared = { client, ledger, transcript, keys, signal, knownReasons, settings };
  const session = createSession(options, parts, shared);
  return {
    session,
    transcript,
    client,
    lookForStrays: (signal) =>
      lookForStrays(client, ledger, {
        signal,
        wallMs: clock.wall(),
        patienceMs: settings.readyTimeoutMs,
      }),
    cleanUp: () => finish(options, parts, { client, ledger, knownReasons, session }),
  };
}

/** A redactor that knows the credentials of the run. */
function redactorFor({ apiKey, login, secondApiKey, otherAccountKey }: RunOptions): Redactor {
  const redactor = createRedactor();
  if (apiKey !== undefined) redactor.add('api key', apiKey);
  if (login !== undefined) redactor.add('password', login.password);
  if (secondApiKey !== undefined) redactor.add('second api key', secondApiKey);
  if (otherAccountKey !== undefined) redactor.add('other account key', otherAccountKey);
  return redactor;
}

/** The settings of the run as it records them. */
function settingsOf(
  { settings, secondApiKey, otherAccountKey }: RunOptions,
  { draws }: RunParts,
): RunSettings {
  const installation = settings.installation ?? draws.hex('installation', 8);
  return {
    ...settings,
    ...(settings.plain === true && { installation }),
    hasSecondKey: secondApiKey !== undefined,
    ...(otherAccountKey !== undefined && { hasOtherAccountKey: true }),
  };
}

interface Beginning {
  transcript: Transcript;
  identity: Identity;
  settings: RunSettings;
  plain: PlainSource | undefined;
}

/** Writes the first record of the transcript and the first line of the ledger. */
async function recordStart(
  options: RunOptions,
  parts: RunParts,
  { transcript, identity, settings, plain }: Beginning,
): Promise<void> {
  const { baseUrl, apiKey, login, level } = options;
  const { clock, runId, draws } = parts;
  const startedAt = new Date(clock.wall()).toISOString();
  transcript.add({
    kind: 'run',
    format: 1,
    suite: suiteVersion,
    requirements: loadRequirements().digest,
    runId,
    baseUrl,
    level,
    seed: draws.seed,
    ...(options.nonce !== undefined && { nonce: options.nonce }),
    isChained: true,
    startedAt,
    userAgent: identity.userAgent,
    settings,
    // Connections without a request would give a plain run away.
    roundTripsMs: plain === undefined ? await roundTrips(options, parts) : [],
    ...(options.only === undefined ? {} : { only: options.only }),
  });
  parts.ledgerFile.append({
    line: 'run',
    runId,
    baseUrl,
    startedAt,
    keyPrint: keyFingerprintOf(runId, { apiKey, login }),
    ...(plain !== undefined && { plain }),
  });
}

function createSession(
  options: RunOptions,
  parts: RunParts,
  shared: Pick<
    SessionParts,
    'client' | 'ledger' | 'transcript' | 'keys' | 'signal' | 'knownReasons' | 'settings'
  >,
): Session {
  const { baseUrl, apiKey, login, level, acceptsUnknownCost } = options;
  const { clock, draws, ssh, restartTarget, onEvent } = parts;
  const { client, ledger, signal, settings } = shared;
  const budget = new Budget({
    maxCostUsd: settings.maxCostUsd,
    entries: ledger.entries,
    longestLifeMs: () => settings.maxMinutes * MS_PER_MINUTE - client.now() + settings.readyTimeoutMs,
    wall: () => clock.wall(),
    acceptsUnknownCost: acceptsUnknownCost === true,
  });
  return new Session({
    ...shared,
    level,
    apiKey,
    login,
    clock,
    draws,
    ssh,
    restartTarget,
    allowPrivate: settings.allowPrivate === true || isPrivateBaseUrl(baseUrl),
    resources: new Resources({
      ...{ client, ledger, budget, signal },
      ...(settings.plain === true && { beforeSearch: searchesLikeMarketplace(clock, signal) }),
    }),
    onWait: (text) => onEvent?.({ event: 'waiting', text }),
  });
}

function keyRing(ssh: SshClient, identity: Identity, redactor: Redactor): KeyRing {
  return new KeyRing((name, type) => {
    const pair = ssh.newKeyPair(identity.keyComment(name), type);
    redactor.add(`${name} private key`, pair.privateKey);
    return pair;
  });
}

async function roundTrips({ baseUrl }: RunOptions, { transport }: RunParts): Promise<number[]> {
  const measured: number[] = [];
  for (let count = 0; count < ROUND_TRIPS; count++) {
    const ms = await transport.roundTripMs(baseUrl, CONNECT_TIMEOUT_MS);
    if (ms !== undefined) measured.push(ms);
  }
  return measured;
}

interface Finishing {
  client: TargetClient;
  ledger: Ledger;
  knownReasons: KnownReasons;
  session: Session;
}

async function finish(
  options: RunOptions,
  parts: RunParts,
  { client, ledger, knownReasons, session }: Finishing,
): Promise<void> {
  const { onEvent, clock, abandon } = parts;
  const { pollIntervalMs, readyTimeoutMs } = options.settings;
  if (client.isLost && (await isStillLost(parts, client))) return noteLost(ledger);
  // A plain run that has done so itself asks for nothing more: no marketplace would.
  const isDone = session.hasLookedForUnexplained && ledger.open.length === 0;
  const mayHaveMade = ledger.entries.length > 0 && !isDone;
  if (mayHaveMade) await orAbandoned(abandon, () => lookForUnexplained(session, abandon));
  if (ledger.open.length > 0) onEvent?.({ event: 'cleaning', open: ledger.open.length });
  const endAll = () =>
    cleanUp({
      client,
      ledger,
      clock,
      pollIntervalMs,
      patienceMs: readyTimeoutMs,
      knownReasons,
      ...(abandon === undefined ? {} : { signal: abandon }),
      onWait: (entries) =>
        onEvent?.({
          event: 'waiting',
          text: `until ${entries.map(({ name }) => name).join(', ')} is gone`,
        }),
    });
  await endAll();
  const isBack = () => readAgain({ client, ledger, clock, signal: abandon });
  if (mayHaveMade)
    await orAbandoned(abandon, async () => {
      onEvent?.({
        event: 'waiting',
        text: `${READ_AGAIN_MS / 1000} s after the last DELETE, to see that what was destroyed stays destroyed`,
      });
      if (!(await isBack())) return;
      await endAll();
      await isBack();
    });
  if (ledger.open.length === 0) ledger.close();
}

/** Sends one more request to a target that was given up. */
async function isStillLost({ abandon }: RunParts, client: TargetClient): Promise<boolean> {
  await client.send('cleanup/reach', { method: 'GET', path: '/instances' }, abandon).catch(() => {});
  return client.isLost;
}

function noteLost(ledger: Ledger): void {
  for (const entry of ledger.open) ledger.note(entry, 'the target accepts no connections');
  if (ledger.open.length === 0) ledger.close();
}

/** Runs a part of the clean-up. Ignores its error if the clean-up was abandoned. */
async function orAbandoned(abandon: AbortSignal | undefined, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (abandon?.aborted !== true) throw error;
  }
}
