import { type JsonObject, stringField } from '../text/json.ts';
import { statusOf, successOf } from '../transcript/exchange.ts';
import type { Exchange, ResourceRecord } from '../transcript/records.ts';
import { hasGoodCredential } from './instances.ts';

/** One exchange's observation of a volume. `'404'` stands for a read that was answered 404. */
export interface VolumeObservation {
  status: string;
  exchange: Exchange;
  volume?: JsonObject;
}

export interface VolumeTimeline {
  id: string;
  resource: ResourceRecord;
  observations: readonly VolumeObservation[];
  deletes: readonly Exchange[];
}

const PATH = /^\/volumes\/([^/?]+)(?:\/(attach|detach))?$/;

export function volumeTimelines(
  exchanges: readonly Exchange[],
  own: ReadonlyMap<string, ResourceRecord>,
): VolumeTimeline[] {
  return [...own].map(([id, resource]) => {
    const of = exchanges.filter((exchange) => hasGoodCredential(exchange) && idOf(exchange) === id);
    return {
      id,
      resource,
      observations: of.flatMap(observationsIn),
      deletes: of.filter(({ request }) => request.method === 'DELETE'),
    };
  });
}

function idOf(exchange: Exchange): string | undefined {
  if (exchange.request.method === 'POST' && exchange.request.path === '/volumes')
    return stringField(successOf(exchange), 'id');
  const [, id] = PATH.exec(exchange.request.path) ?? [];
  return id === undefined || id === 'locations' ? undefined : decodeURIComponent(id);
}

function observationsIn(exchange: Exchange): VolumeObservation[] {
  if (exchange.request.method === 'GET' && statusOf(exchange) === 404) return [{ status: '404', exchange }];
  const volume = successOf(exchange);
  const status = stringField(volume, 'status');
  return volume === undefined || status === undefined ? [] : [{ status, exchange, volume }];
}
