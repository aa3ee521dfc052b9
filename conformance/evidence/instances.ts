import { type JsonObject, objectsField, textField } from '../text/json.ts';
import { isSuccess, jsonOf, statusOf, successOf } from '../transcript/exchange.ts';
import type { Exchange, ResourceRecord } from '../transcript/records.ts';

/** What an exchange says of an instance. `'404'` is a read of it that was answered so. */
export interface Observation {
  status: string;
  exchange: Exchange;
  /** `get`: the polled read. `list`: an item. `action`: the answer to its create, start, stop or DELETE. */
  source: 'get' | 'list' | 'action';
  /** Absent for `'404'`. */
  instance?: JsonObject;
}

/** All that was seen of one instance of the run, in the order in which it was asked for. */
export interface InstanceTimeline {
  id: string;
  resource: ResourceRecord;
  observations: readonly Observation[];
  /** The exchanges that asked for it, by what they asked. */
  created: Exchange | undefined;
  deletes: readonly Exchange[];
  starts: readonly Exchange[];
  stops: readonly Exchange[];
  /** The 404 with which the platform took a SPOT instance back: nobody had asked, and it read so ever after. */
  reclaimed: Exchange | undefined;
}

export function instanceTimelines(
  exchanges: readonly Exchange[],
  own: ReadonlyMap<string, ResourceRecord>,
  /** The ids of the offers that are SPOT. */
  spotOffers: ReadonlySet<string | undefined>,
): InstanceTimeline[] {
  const observations = new Map<string, Observation[]>([...own.keys()].map((id) => [id, []]));
  const asked = new Map<string, Asked[]>();
  for (const exchange of exchanges) {
    for (const [id, observation] of observationsIn(exchange)) observations.get(id)?.push(observation);
    const of = askedOf(exchange);
    if (of !== undefined) asked.set(of.id, [...(asked.get(of.id) ?? []), of]);
  }
  return [...own].map(([id, resource]) => {
    const of = (action: Asked['action']): Exchange[] =>
      (asked.get(id) ?? []).filter((item) => item.action === action).map(({ exchange }) => exchange);
    const seen = observations.get(id) ?? [];
    const offer = textField(seen.find(({ instance }) => instance)?.instance, 'configuration_id');
    return {
      id,
      resource,
      observations: seen,
      created: exchanges.find(
        (exchange) => isCreate(exchange) && textField(successOf(exchange), 'id') === id,
      ),
      deletes: of('delete'),
      starts: of('start'),
      stops: of('stop'),
      reclaimed: spotOffers.has(offer) ? firstFinal404(seen) : undefined,
    };
  });
}

/** The first of the reads that end with 404, two at the least. */
function firstFinal404(seen: readonly Observation[]): Exchange | undefined {
  const reads = seen.filter(({ source }) => source === 'get');
  const alive = reads.findLastIndex(({ status }) => status !== '404');
  const gone = reads.slice(alive + 1);
  return gone.length > 1 ? gone[0]?.exchange : undefined;
}

/** Whether `a` was over before `b` was sent, so that they have an order. */
export function isBefore(a: Exchange, b: Exchange): boolean {
  return a.endedAt <= b.sentAt;
}

interface Asked {
  id: string;
  action: 'read' | 'delete' | 'start' | 'stop';
  exchange: Exchange;
}

const PATH = /^\/instances\/([^/?]+)(?:\/(start|stop))?(?:\?|$)/;

/** What an exchange with a good credential asked of one instance. */
function askedOf(exchange: Exchange): Asked | undefined {
  const [, rawId, action] = PATH.exec(exchange.request.path) ?? [];
  if (rawId === undefined || !hasGoodCredential(exchange)) return undefined;
  const id = decode(rawId);
  const { method } = exchange.request;
  if (action === 'start' || action === 'stop')
    return method === 'POST' ? { id, action, exchange } : undefined;
  if (method === 'DELETE') return { id, action: 'delete', exchange };
  return method === 'GET' ? { id, action: 'read', exchange } : undefined;
}

export function hasGoodCredential({ credential }: Exchange): boolean {
  return credential !== 'none' && credential !== 'altered';
}

function isCreate({ request }: Exchange): boolean {
  return request.method === 'POST' && request.path === '/instances';
}

function observationsIn(exchange: Exchange): [string, Observation][] {
  const of = askedOf(exchange);
  if (of?.action === 'read' && statusOf(exchange) === 404)
    return [[of.id, { status: '404', exchange, source: 'get' }]];
  const source =
    of === undefined ? (isCreate(exchange) ? 'action' : 'list') : of.action === 'read' ? 'get' : 'action';
  if (source === 'list' && !exchange.request.path.startsWith('/instances')) return [];
  const body = successOf(exchange);
  const instances =
    source === 'list' ? objectsField(jsonOf(exchange), 'instances') : body === undefined ? [] : [body];
  return instances.flatMap((instance): [string, Observation][] => {
    const id = of?.id ?? textField(instance, 'id');
    const status = textField(instance, 'status');
    return id === undefined || status === undefined ? [] : [[id, { status, exchange, source, instance }]];
  });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `Within seconds`: less than the contract's shortest poll interval. */
export const FRESH_MS = 10_000;

/** The first DELETE that the target took on: answered with success, or with 404. */
export function acceptedDelete({ deletes }: InstanceTimeline): Exchange | undefined {
  return deletes.find((exchange) => isSuccess(exchange) || statusOf(exchange) === 404);
}

/** Whether an exchange was over before anyone had asked for the instance's end, and before it showed one by itself. */
export function isWhileAlive(timeline: InstanceTimeline, exchange: Exchange): boolean {
  const [firstDelete] = timeline.deletes;
  if (firstDelete !== undefined && !isBefore(exchange, firstDelete)) return false;
  if (timeline.reclaimed !== undefined && !isBefore(exchange, timeline.reclaimed)) return false;
  return !timeline.observations.some(
    (other) => isEnd(other.status) && other.exchange !== exchange && !isBefore(exchange, other.exchange),
  );
}

/** Statuses after which a 404 is lawful. */
export function isEnd(status: string): boolean {
  return status === 'DESTROYING' || status === 'DESTROYED';
}

/** The polled reads, in the order of sending. */
export function reads({ observations }: InstanceTimeline): Observation[] {
  return observations.filter(({ source }) => source === 'get');
}

/** Each two sightings that follow one another without overlapping in time. */
export function pairs(observations: readonly Observation[]): [Observation, Observation][] {
  return observations.flatMap((after, index): [Observation, Observation][] => {
    const before = observations
      .slice(0, index)
      .findLast((earlier) => isBefore(earlier.exchange, after.exchange));
    return before === undefined ? [] : [[before, after]];
  });
}

/** Milliseconds as a person reads them. */
export function duration(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
