import { suiteVersion } from '../contract/package.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { withoutUsername } from '../http/sign-in.ts';
import { paceOf, TargetClient } from '../http/target-client.ts';
import { Budget } from '../resources/budget.ts';
import { cleanUp } from '../resources/clean-up.ts';
import { keyFingerprintOf, Ledger, prefixOf, toRecord } from '../resources/ledger.ts';
import { adoptOrphans } from '../resources/presence.ts';
import { Resources } from '../resources/resources.ts';
import { Session } from '../scenarios/session.ts';
import { isPrivateBaseUrl } from '../ssh/private-addresses.ts';
import { createRedactor } from '../text/redact.ts';
import type { KeyName, TranscriptRecord } from '../transcript/records.ts';
import { Transcript } from '../transcript/transcript.ts';
import type { RunOptions, RunParts } from './options.ts';

const CONNECT_TIMEOUT_MS = 30_000;
const ROUND_TRIPS = 3;
const MS_PER_MINUTE = 60_000;

export interface Prepared {
  session: Session;
  transcript: Transcript;
  client: TargetClient;
  /** Destroys all open entries, and closes the ledger once none are left. */
  cleanUp(): Promise<void>;
}

/** Assembles a run and writes its first records. Only opens TCP connections to the target. */
export async function prepare(options: RunOptions, parts: RunParts, signal: AbortSignal): Promise<Prepared> {
  const { baseUrl, apiKey, login, secondApiKey, level, settings } = options;
  const { clock, runId, onEvent } = parts;
  const keys = newKeys(parts);
  const redactor = createRedactor();
  if (apiKey !== undefined) redactor.add('api key', apiKey);
  if (login !== undefined) redactor.add('password', login.password);
  if (secondApiKey !== undefined) redactor.add('second api key', secondApiKey);
  for (const [name, { privateKey }] of Object.entries(keys)) redactor.add(`${name} private key`, privateKey);
  const transcript = new Transcript({
    redact: (record) => redactor.value(withoutUsername(record, login)) as TranscriptRecord,
    sink: parts.sink,
    onRecord: (record) => onEvent?.({ event: 'record', record }),
  });
  const userAgent = `berth-conformance/${suiteVersion} run/${runId}`;
  const client = new TargetClient({
    transport: parts.transport,
    clock,
    transcript,
    baseUrl,
    userAgent,
    apiKey,
    login,
    secondApiKey,
    namePrefix: prefixOf(runId),
    paceMs: paceOf(settings.pollIntervalMs),
    onSecret: (name, secret) => redactor.add(name, secret),
  });
  const startedAt = new Date(clock.wall()).toISOString();
  transcript.add({
    kind: 'run',
    format: 1,
    suite: suiteVersion,
    requirements: loadRequirements().digest,
    runId,
    baseUrl,
    level,
    startedAt,
    userAgent,
    settings: { ...settings, hasSecondKey: secondApiKey !== undefined },
    roundTripsMs: await roundTrips(options, parts),
    ...(options.only === undefined ? {} : { only: options.only }),
  });
  parts.ledgerFile.append({
    line: 'run',
    runId,
    baseUrl,
    startedAt,
    keyPrint: keyFingerprintOf(runId, { apiKey, login }),
  });
  const ledger = new Ledger({
    file: parts.ledgerFile,
    runId,
    wall: () => clock.wall(),
    onChange: (entry) => {
      transcript.add(toRecord(entry, client.now()));
      onEvent?.({ event: 'resource', entry: { ...entry } });
    },
  });
  const longestLifeMs = () => settings.maxMinutes * MS_PER_MINUTE - client.now() + settings.readyTimeoutMs;
  const budget = new Budget({
    maxCostUsd: settings.maxCostUsd,
    entries: ledger.entries,
    longestLifeMs,
    wall: () => clock.wall(),
    acceptsUnknownCost: options.acceptsUnknownCost === true,
  });
  const session = new Session({
    level,
    apiKey,
    login,
    client,
    clock,
    ssh: parts.ssh,
    keys,
    ledger,
    transcript,
    signal,
    settings: { ...settings, hasSecondKey: secondApiKey !== undefined },
    allowPrivate: settings.allowPrivate === true || isPrivateBaseUrl(baseUrl),
    resources: new Resources({ client, ledger, budget, signal }),
    onWait: (text) => onEvent?.({ event: 'waiting', text }),
  });
  return { session, transcript, client, cleanUp: () => finish(options, parts, client, ledger) };
}

function newKeys({ ssh, runId }: RunParts): Record<KeyName, ReturnType<RunParts['ssh']['newKeyPair']>> {
  return {
    first: ssh.newKeyPair(`berth-conformance-${runId}-first`),
    second: ssh.newKeyPair(`berth-conformance-${runId}-second`),
    other: ssh.newKeyPair(`berth-conformance-${runId}-other`),
  };
}

async function roundTrips({ baseUrl }: RunOptions, { transport }: RunParts): Promise<number[]> {
  const measured: number[] = [];
  for (let count = 0; count < ROUND_TRIPS; count++) {
    const ms = await transport.roundTripMs(baseUrl, CONNECT_TIMEOUT_MS);
    if (ms !== undefined) measured.push(ms);
  }
  return measured;
}

async function finish(
  options: RunOptions,
  parts: RunParts,
  client: TargetClient,
  ledger: Ledger,
): Promise<void> {
  const { onEvent, clock, abandon } = parts;
  const { pollIntervalMs, readyTimeoutMs } = options.settings;
  if (ledger.entries.length > 0) await findOrphans(parts, client, ledger);
  if (ledger.open.length > 0) onEvent?.({ event: 'cleaning', open: ledger.open.length });
  const left = await cleanUp({
    client,
    ledger,
    clock,
    pollIntervalMs,
    patienceMs: readyTimeoutMs,
    ...(abandon === undefined ? {} : { signal: abandon }),
    onWait: (entries) =>
      onEvent?.({ event: 'waiting', text: `until ${entries.map(({ name }) => name).join(', ')} is gone` }),
  });
  if (left.length === 0) ledger.close();
}

/** Finds instances that the target refused but created all the same, by the run's name prefix. */
async function findOrphans(
  { runId, abandon }: RunParts,
  client: TargetClient,
  ledger: Ledger,
): Promise<void> {
  try {
    const read = { method: 'GET', path: '/instances' } as const;
    adoptOrphans(ledger, runId, await client.send('cleanup/strays', read, abandon));
  } catch (error) {
    if (abandon?.aborted !== true) throw error;
  }
}
