import { Evidence } from '../../evidence/evidence.ts';
import type { Finding } from '../../evidence/finding.ts';
import { FRESH_MS, hasGoodCredential } from '../../evidence/instances.ts';
import { cut } from '../../report/excerpt.ts';
import { costUsd } from '../../resources/budget.ts';
import type { Entry } from '../../resources/ledger.ts';
import { lists, type Place } from '../../scenarios/catalog/catalog.ts';
import { placements } from '../../scenarios/placement.ts';
import { numberField, objectsField, parseJson, stringField } from '../../text/json.ts';
import { printable } from '../../text/printable.ts';
import {
  answerOf,
  isBeyondQuota,
  isSuccess,
  jsonOf,
  requestOf,
  statusOf,
  successOf,
} from '../../transcript/exchange.ts';
import type { Exchange, TranscriptRecord } from '../../transcript/records.ts';
import type { Judged } from '../../verdict/judge.ts';
import { leftovers } from '../../verdict/outcome.ts';
import type { Fault, Priced, ProbeSummary, Tally } from '../records.ts';
import { samplesOf } from './checks.ts';

const MOST_LATENCIES = 200;
const MOST_OFFERS = 200;
const MOST_CHARACTERS = 400;
/** Two prices that differ by a smaller share are the same, rounded. */
const ROUNDING = 1e-6;

export interface Summarised {
  /** All records, those of outages too. */
  records: readonly TranscriptRecord[];
  judged: readonly Judged[];
  entries: readonly Entry[];
  wallMs: number;
}

/** Sums a probe up. */
export function summaryOf({ records, judged, entries, wallMs }: Summarised): ProbeSummary {
  const evidence = new Evidence(records);
  const hide = hiding(evidence, entries);
  const faultsOf = (verdict: 'fail' | 'warn'): Fault[] =>
    judged.flatMap((each) =>
      each.verdict === verdict && each.ruling.verdict === 'fail'
        ? [toFault(each.requirement.id, each.ruling, hide)]
        : [],
    );
  const reads = evidence.exchanges.filter(
    (exchange) => exchange.request.method === 'GET' && hasGoodCredential(exchange),
  );
  const answered = reads.filter((read) => (statusOf(read) ?? 500) < 500);
  const offers = offersIn(evidence.exchanges);
  const { end } = evidence;
  return {
    end: end?.reason ?? 'interrupted',
    ...(end?.detail !== undefined && { detail: hide(cut(end.detail, MOST_CHARACTERS)) }),
    passed: judged.filter(({ verdict }) => verdict === 'pass').map(({ requirement }) => requirement.id),
    failed: faultsOf('fail'),
    warned: faultsOf('warn'),
    notTested: judged.flatMap(({ requirement: { id }, ruling }) =>
      ruling.verdict === 'not_tested' && id.startsWith('MON-')
        ? [{ check: id, reason: hide(ruling.reason) }]
        : [],
    ),
    latenciesMs: answered
      .slice(0, MOST_LATENCIES)
      .map(({ sentAt, endedAt }) => Math.round((endedAt - sentAt) * 10) / 10),
    answered: { good: answered.length, of: reads.length },
    reached: tally(samplesOf(evidence), ({ isReached }) => isReached),
    stocked: tally(createsOfListed(evidence.exchanges), (create) => statusOf(create) !== 409),
    priced: tally(pricesOf(evidence), ({ price, offered }) => price <= offered * (1 + ROUNDING)),
    clean: cleanOf(judged),
    costUsd: entries.reduce((sum, entry) => sum + costUsd(entry, wallMs), 0),
    left: leftovers(evidence.resources).length,
    ...(offers !== undefined && { offers }),
  };
}

function tally<T>(items: readonly T[], isGood: (item: T) => boolean): Tally {
  return { good: items.filter(isGood).length, of: items.length };
}

function toFault(
  check: string,
  { problems }: Extract<Finding, { verdict: 'fail' }>,
  hide: (text: string) => string,
): Fault {
  const [first] = problems;
  const shown = first?.shown?.kind === 'exchange' ? first.shown : undefined;
  const said = (text: string): string => printable(hide(text), MOST_CHARACTERS);
  return {
    check,
    expected: said(first?.expected ?? 'the requirement met'),
    actual: said(first?.actual ?? 'it is not'),
    ...(shown !== undefined && { request: said(`${requestOf(shown)} → ${answerOf(shown)}`) }),
  };
}

/** Replaces what identifies the account's machines: a certificate is public, and the provider reads it too. */
function hiding(evidence: Evidence, entries: readonly Entry[]): (text: string) => string {
  const hosts = evidence.logins.flatMap(({ host, port, hostKey }) => [host, String(port), hostKey ?? '']);
  const shown = evidence.instances.flatMap(({ observations }) =>
    observations.flatMap(({ instance }) =>
      ['public_ip', 'private_ip', 'name'].map((field) => stringField(instance, field) ?? ''),
    ),
  );
  const words = [
    ...entries.flatMap(({ id, name }) => [id ?? '', name]),
    ...hosts,
    ...shown,
    evidence.run.runId,
  ];
  const known = [...new Set(words)].filter((word) => word.length > 1).toSorted((a, b) => b.length - a.length);
  return (text) => known.reduce((rest, word) => rest.replaceAll(word, '…'), text);
}

/** The creates of an offer that was listed in its region right before, and still some seconds after a 409. */
function createsOfListed(exchanges: readonly Exchange[]): Exchange[] {
  const sent = exchanges.toSorted((a, b) => a.sentAt - b.sentAt);
  return sent.filter((create) => {
    const place = placeAsked(create);
    if (place === undefined || create.answer === undefined || isBeyondQuota(create)) return false;
    const reads = sent.filter((read) => isSuccess(read) && isAvailabilityOf(read, place.region));
    const before = reads.findLast(({ endedAt }) => endedAt <= create.sentAt);
    if (before === undefined || !lists(before, place)) return false;
    if (statusOf(create) === 201) return true;
    const after = reads.find(({ sentAt }) => sentAt >= create.endedAt + FRESH_MS);
    return statusOf(create) === 409 && after !== undefined && lists(after, place);
  });
}

function placeAsked({ request }: Exchange): Place | undefined {
  if (request.method !== 'POST' || request.path !== '/instances') return undefined;
  const body = parseJson(request.body);
  const [configurationId, region] = [stringField(body, 'configuration_id'), stringField(body, 'region')];
  return configurationId === undefined || region === undefined ? undefined : { configurationId, region };
}

function isAvailabilityOf({ request }: Exchange, region: string): boolean {
  const paths = ['/availability', `/availability?region=${encodeURIComponent(region)}`];
  return request.method === 'GET' && paths.includes(request.path);
}

/** The highest price of each instance, and the highest of its offer. */
function pricesOf({ instances, exchanges }: Evidence): { price: number; offered: number }[] {
  const offers = new Map<string, number>();
  for (const exchange of exchanges)
    for (const offer of objectsField(jsonOf(exchange), 'configurations')) {
      const id = stringField(offer, 'id') ?? '';
      const prices = ['price_per_hour', 'spot_price_per_hour'].map((name) => numberField(offer, name) ?? 0);
      offers.set(id, Math.max(offers.get(id) ?? 0, ...prices));
    }
  return instances.flatMap(({ observations }) => {
    const shown = observations.flatMap(({ instance }) => (instance === undefined ? [] : [instance]));
    const prices = shown.flatMap((instance) => numberField(instance, 'price_per_hour') ?? []);
    const offered = offers.get(stringField(shown[0], 'configuration_id') ?? '');
    return prices.length === 0 || !offered ? [] : [{ price: Math.max(...prices), offered }];
  });
}

function cleanOf(judged: readonly Judged[]): Tally {
  const verdict = judged.find(({ requirement }) => requirement.id === 'MON-REMNANT-001')?.verdict;
  return { good: verdict === 'pass' ? 1 : 0, of: verdict === 'pass' || verdict === 'fail' ? 1 : 0 };
}

function offersIn(exchanges: readonly Exchange[]): Priced[] | undefined {
  const last = exchanges.findLast(
    ({ request, answer }) =>
      request.path === '/availability' && answer !== undefined && answer.status === 200,
  );
  if (last === undefined) return undefined;
  return placements(objectsField(successOf(last), 'configurations'))
    .flatMap(({ configurationId, region, pricePerHour }) =>
      pricePerHour === undefined ? [] : [{ offer: configurationId, region, pricePerHour }],
    )
    .slice(0, MOST_OFFERS);
}
