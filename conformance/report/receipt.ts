import { instancePath, volumePath } from '../contract/paths.ts';
import { toCurl } from '../http/curl.ts';
import { worstCaseUsd } from '../resources/budget.ts';
import { parseJson, stringField } from '../text/json.ts';
import type { Exchange, ResourceRecord, TranscriptRecord } from '../transcript/records.ts';
import { leftovers } from '../verdict/outcome.ts';
import { cut } from './excerpt.ts';
import type { ReportLeftover, ReportResource } from './report.ts';
import { round } from './shown.ts';

/** The command that destroys the leftovers of earlier runs. */
export const SWEEP_COMMAND = 'berth conformance sweep';

const MAX_NOTE_CHARACTERS = 500;

/** The resources of a run: one row per ledger entry, with its cost by the price of its offer. */
export function toReceipt(records: readonly TranscriptRecord[], endedAtMs: number): ReportResource[] {
  const entries = new Map<number, ResourceRecord[]>();
  for (const record of records)
    if (record.kind === 'resource') entries.set(record.entry, [...(entries.get(record.entry) ?? []), record]);
  return [...entries.values()].flatMap((history) => {
    const [first] = history;
    const last = history.at(-1);
    return first === undefined || last === undefined ? [] : [toReportResource(first, last, endedAtMs)];
  });
}

function toReportResource(first: ResourceRecord, last: ResourceRecord, endedAtMs: number): ReportResource {
  const { entry, type, name, id, step, state, pricePerHour, note } = last;
  const lifetimeMs = Math.max((state === 'gone' ? last.at : endedAtMs) - first.at, 0);
  const life = state === 'refused' ? undefined : lifetimeMs;
  return {
    entry,
    type,
    name,
    step,
    state,
    asked_at_ms: round(first.at),
    ...(id !== undefined && { id }),
    ...(pricePerHour !== undefined && { price_per_hour_usd: pricePerHour }),
    ...(life !== undefined && { lifetime_ms: round(life) }),
    ...(life === undefined || pricePerHour === undefined
      ? {}
      : { estimated_usd: toMicroUsd(worstCaseUsd(pricePerHour, life)) }),
    ...(note !== undefined && { note: cut(note, MAX_NOTE_CHARACTERS) }),
  };
}

/** The total cost of the resources, and how many have no price. */
export function totalOf(resources: readonly ReportResource[]): { usd: number; unpriced: number } {
  const lived = resources.filter(({ lifetime_ms }) => lifetime_ms !== undefined);
  return {
    usd: toMicroUsd(lived.reduce((sum, { estimated_usd }) => sum + (estimated_usd ?? 0), 0)),
    unpriced: lived.filter(({ price_per_hour_usd }) => price_per_hour_usd === undefined).length,
  };
}

function toMicroUsd(usd: number): number {
  return Math.round(usd * 1e6) / 1e6;
}

/** The resources that may still exist, each with instructions for removing it. */
export function toLeftovers(
  resources: readonly ResourceRecord[],
  exchanges: readonly Exchange[],
  baseUrl: string,
): ReportLeftover[] {
  return leftovers(resources).map((resource) => {
    const { entry, type, name, id, pricePerHour, note } = resource;
    return {
      entry,
      type,
      name,
      ...(id !== undefined && { id }),
      ...(pricePerHour !== undefined && { price_per_hour_usd: pricePerHour }),
      ...(note !== undefined && { note: cut(note, MAX_NOTE_CHARACTERS) }),
      ...whatToDo(resource, regionOf(resource, exchanges), baseUrl),
    };
  });
}

function whatToDo(
  { type, id, name }: ResourceRecord,
  region: string | undefined,
  baseUrl: string,
): Pick<ReportLeftover, 'how' | 'command'> {
  const of = { ...(id !== undefined && { id }), ...(region !== undefined && { region }) };
  if (id !== undefined) {
    const path = type === 'instance' ? instancePath(of) : volumePath(of);
    return { how: `destroy this ${type}`, command: commandOf('DELETE', `${baseUrl}${path}`) };
  }
  if (type === 'instance')
    return {
      how: `look for an instance whose name begins with ${name}, and destroy it if it is there`,
      command: commandOf('GET', `${baseUrl}/instances`),
    };
  return {
    how: `look for a volume named ${name} on the platform: the contract has no list of volumes. Once you know that it is not there: ${SWEEP_COMMAND} ${baseUrl} --absent ${name}`,
  };
}

function commandOf(method: string, url: string): string {
  const command = toCurl({ method, url, headers: { authorization: 'Bearer [redacted: api key]' } });
  // The headers that curl adds do not matter here, and the command should be short.
  return command.replace(/ -H 'User-Agent:' -H 'Accept:'$/, '');
}

/** The region of the create request. */
function regionOf({ step, name }: ResourceRecord, exchanges: readonly Exchange[]): string | undefined {
  const asked = exchanges
    .filter((exchange) => exchange.step === step && exchange.request.method === 'POST')
    .map(({ request }) => parseJson(request.body))
    .find((body) => stringField(body, 'name') === name);
  return stringField(asked, 'region');
}
