import { type JsonObject, objectsField, stringField } from '../text/json.ts';
import { isSuccess, jsonOf, statusOf, successOf } from '../transcript/exchange.ts';
import type { Exchange, ResourceRecord } from '../transcript/records.ts';

/** One exchange's observation of an instance. `'404'` stands for a read that was answered 404. */
export interface Observation {
  status: string;
  exchange: Exchange;
  /** `get`: the polled read. `list`: an item of a list. `action`: the answer to create, start, stop or DELETE. */
  source: 'get' | 'list' | 'action';
  /** Absent for `'404'`. */
  instance?: JsonObject;
}

/** Every observation of one instance of the run, in the order of the requests. */
export interface InstanceTimeline {
  id: string;
  resource: ResourceRecord;
  observations: readonly Observation[];
  /** The requests about this instance, by their action. */
  created: Exchange | undefined;
  deletes: readonly Exchange[];
  starts: readonly Exchange[];
  stops: readonly Exchange[];
  /**
   * The first 404 of a SPOT instance that the platform reclaimed: no DELETE was sent before, and every later read was
   * 404 too.
   */
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
    const offer = stringField(seen.find(({ instance }) => instance)?.instance, 'configuration_id');
    return {
      id,
      resource,
      observations: seen,
      created: exchanges.find(
        (exchange) => isCreate(exchange) && stringField(successOf(exchange), 'id') === id,
      ),
      deletes: of('delete'),
      starts: of('start'),
      stops: of('stop'),
      reclaimed: spotOffers.has(offer) ? firstFinal404(seen, of('delete')) : undefined,
    };
  });
}

/** The first of the 404s at the end of the polled reads, if no DELETE came before; there must be at least two. */
function firstFinal404(seen: readonly Observation[], deletes: readonly Exchange[]): Exchange | undefined {
  const reads = seen.filter(({ source }) => source === 'get');
  const alive = reads.findLastIndex(({ status }) => status !== '404');
  const [first, second] = reads.slice(alive + 1);
  if (first === undefined || second === undefined) return undefined;
  return deletes.some(({ n }) => n < first.exchange.n) ? undefined : first.exchange;
}

/** Whether `a` ended before `b` was sent, so that their order is certain. */
export function isBefore(a: Exchange, b: Exchange): boolean {
  return a.endedAt <= b.sentAt;
}

interface Asked {
  id: string;
  action: 'read' | 'delete' | 'start' | 'stop';
  exchange: Exchange;
}

const PATH = /^\/instances\/([^/?]+)(?:\/(start|stop))?(?:\?|$)/;

/** The instance and the action of a request that carried a valid credential. */
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
  return !['none', 'altered', 'other account key'].includes(credential);
}

export function isCreate({ request }: Exchange): boolean {
  return request.method === 'POST' && request.path === '/instances';
}

function observationsIn(exchange: Exchange): [string, Observation][] {
  const of = askedOf(exchange);
  if (of?.action === 'read' && statusOf(exchange) === 404) {
    // Where ids are unique in a region only, a read without it finds nothing (O: Instances, rule 1).
    const isOfRegion = exchange.request.path.includes('?region=');
    return isOfRegion ? [[of.id, { status: '404', exchange, source: 'get' }]] : [];
  }
  const source =
    of === undefined ? (isCreate(exchange) ? 'action' : 'list') : of.action === 'read' ? 'get' : 'action';
  if (source === 'list' && !(exchange.request.path.startsWith('/instances') && hasGoodCredential(exchange)))
    return [];
  const body = successOf(exchange);
  const instances =
    source === 'list' ? objectsField(jsonOf(exchange), 'instances') : body === undefined ? [] : [body];
  return instances.flatMap((instance): [string, Observation][] => {
    const id = of?.id ?? stringField(instance, 'id');
    const status = stringField(instance, 'status');
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

/** The first DELETE that the target accepted: answered with success, or with 404. */
export function acceptedDelete({ deletes }: InstanceTimeline): Exchange | undefined {
  return deletes.find((exchange) => isSuccess(exchange) || statusOf(exchange) === 404);
}

/** Whether an exchange ended before the first DELETE, and before the instance ended by itself. */
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

/** The first read of an instance that was gone after its DELETE. */
export function firstGone(timeline: InstanceTimeline): Exchange | undefined {
  const asked = acceptedDelete(timeline);
  return timeline.observations.find(
    ({ status, exchange, source }) =>
      source === 'get' && ['404', 'DESTROYED'].includes(status) && asked && isBefore(asked, exchange),
  )?.exchange;
}

/** The first observation during the clean-up that shows an instance alive that was gone. DEL-STAYS-001 judges it. */
export function firstBack(timeline: InstanceTimeline): Observation | undefined {
  const gone = firstGone(timeline);
  return timeline.observations.find(
    ({ status, exchange }) =>
      gone !== undefined &&
      exchange.step.startsWith('cleanup/') &&
      !isEnd(status) &&
      status !== '404' &&
      exchange.sentAt - gone.endedAt > FRESH_MS,
  );
}

/** An instance that came back, up to then. */
export function untilBack(timeline: InstanceTimeline): InstanceTimeline {
  const back = firstBack(timeline)?.exchange;
  if (back === undefined) return timeline;
  const isEarlier = ({ n }: Exchange): boolean => n < back.n;
  return {
    ...timeline,
    observations: timeline.observations.filter(({ exchange }) => isEarlier(exchange)),
    deletes: timeline.deletes.filter(isEarlier),
  };
}

/** The polled reads, in the order of sending. */
export function reads({ observations }: InstanceTimeline): Observation[] {
  return observations.filter(({ source }) => source === 'get');
}

/** Consecutive observations that do not overlap in time. */
export function pairs(observations: readonly Observation[]): [Observation, Observation][] {
  return observations.flatMap((after, index): [Observation, Observation][] => {
    const before = observations
      .slice(0, index)
      .findLast((earlier) => isBefore(earlier.exchange, after.exchange));
    return before === undefined ? [] : [[before, after]];
  });
}
