import { type Names, suiteNames } from '../http/identity.ts';
import { refillTooEarly } from '../scenarios/capacity/refill.ts';
import { firstOfOtherRegion } from '../scenarios/catalog/regions.ts';
import { firstOutOfOrder, firstTooEarly } from '../scenarios/drawn-order.ts';
import { firstOfOtherSample } from '../scenarios/list-samples.ts';
import { firstOfOtherAttaches } from '../scenarios/volumes/attaches-again.ts';
import { parseJson, stringField } from '../text/json.ts';
import { type Draws, requestLabel } from '../transcript/draws.ts';
import type { Exchange, RunRecord, TranscriptRecord } from '../transcript/records.ts';
import { CertificateError } from './sign.ts';

/**
 * Draws again what the run of a transcript drew: names, ids, orders, moments, samples, regions and counts.
 * @throws {CertificateError} if the transcript shows another
 */
export function refuseOtherDraws(records: readonly TranscriptRecord[], draws: Draws): void {
  const [run] = records;
  if (run?.kind !== 'run' || run.runId !== runIdOf(draws))
    throw new CertificateError('its run id is not the one that the nonce draws');
  const exchanges = records
    .filter((record) => record.kind === 'exchange')
    .toSorted((one, other) => one.n - other.n);
  const names = suiteNames(run.runId);
  for (const exchange of exchanges) {
    const what = differenceOf(exchange, names, draws);
    if (what !== undefined)
      throw new CertificateError(
        `the ${what} of its request ${exchange.n} is not the one that the nonce draws`,
      );
  }
  refuseOtherSequence(run, records, exchanges, draws);
  const resources = records.filter((record) => record.kind === 'resource');
  const entries = new Set(resources.map(({ entry }) => entry)).size;
  const drawn = new Set(Array.from({ length: entries }, (_, index) => names.nameOf(index + 1)));
  const named = resources.find(({ name, step }) => !drawn.has(name) && !isFound(step));
  if (named !== undefined)
    throw new CertificateError(`the name ${named.name} is not one that the nonce draws`);
}

/** Checks which requests the run sent, in which order and when. */
function refuseOtherSequence(
  { settings }: RunRecord,
  records: readonly TranscriptRecord[],
  all: readonly Exchange[],
  draws: Draws,
): void {
  // Requests that were sent again, and those that renew a token, can come between any others.
  const exchanges = all.filter(({ step, superseded }) => !superseded && step !== 'token/renew');
  const end = records.at(-1);
  const isCompleted = end?.kind === 'end' && end.reason === 'completed';
  const early = 'was sent earlier than the moment that the nonce draws';
  const found: readonly (readonly [Exchange | undefined, string])[] = [
    [
      firstOfOtherRegion(draws, exchanges, isCompleted),
      'is about another region than the nonce draws, or one of the drawn regions is missing',
    ],
    [firstOutOfOrder(draws, exchanges), 'is not in the order that the nonce draws'],
    [firstTooEarly(draws, exchanges, settings.pollIntervalMs), early],
    [refillTooEarly(draws, exchanges), early],
    [
      firstOfOtherSample(draws, exchanges),
      'is a list sample before the moment that the nonce draws, or a poll in place of one',
    ],
    [firstOfOtherAttaches(draws, exchanges), 'shows more or fewer repeated attaches than the nonce draws'],
  ];
  for (const [exchange, why] of found)
    if (exchange !== undefined)
      throw new CertificateError(`its request ${exchange.n} (${exchange.step}) ${why}`);
}

/** The id of a run that draws these. */
export function runIdOf(draws: Draws): string {
  return draws.hex('run id', 10);
}

/** What in a request differs from the draws of its run. */
function differenceOf(
  { n, requestId, step, request }: Exchange,
  names: Names,
  draws: Draws,
): string | undefined {
  const drawnId = draws.uuid(requestLabel(n));
  if (requestId !== drawnId || request.headers['x-request-id'] !== drawnId) return 'request id';
  const name = nameIn(request);
  if (name !== undefined && !names.isOwn(name)) return 'name';
  const id = DRAWN_IDS.find(({ isIn }) => isIn(step, request.path));
  const text = `${request.path} ${request.headers['authorization'] ?? ''} ${request.body ?? ''}`;
  return id === undefined || text.includes(draws.uuid(id.label)) ? undefined : 'id';
}

/** The name of the instance or volume that a request creates, also where its body is cut off. */
function nameIn({ method, body = '' }: Exchange['request']): string | undefined {
  if (method !== 'POST') return undefined;
  const json = parseJson(body);
  return json === undefined ? /"name":"([^"]*)"/.exec(body)?.[1] : stringField(json, 'name');
}

/** The requests that have a drawn id. */
const DRAWN_IDS: readonly { label: string; isIn: (step: string, path: string) => boolean }[] = [
  { label: 'token/stranger', isIn: (step) => step === 'token/wrong-key' || step === 'token/wrong-login' },
  {
    label: 'token/elsewhere',
    isIn: (step, path) => step === 'token/use/elsewhere' && path.startsWith('/instances/'),
  },
  {
    label: 'unknown/id',
    isIn: (step) => /^unknown\/(instance|volume|method)\b/.test(step),
  },
  {
    label: 'unauthenticated/wrong-key',
    isIn: (step, path) => step === 'unauthenticated/wrong-key' && !isOfId(path),
  },
  { label: 'unauthenticated/id', isIn: (step, path) => step.startsWith('unauthenticated/') && isOfId(path) },
];

const isOfId = (path: string): boolean => /^\/(instances|volumes)\/(?!locations\b)/.test(path);

/** Instances that the run found, and did not create, have names of their own. */
const isFound = (step: string): boolean => step.startsWith('cleanup/') || step.startsWith('ledger/');
