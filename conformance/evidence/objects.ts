import { isObject } from '../text/json.ts';
import { isSuccess, jsonOf } from '../transcript/exchange.ts';
import type { Exchange } from '../transcript/records.ts';

/** Of a longer list only the first items are checked. */
const MAX_ITEMS = 2000;

/** A value at a place where the contract has an object. It may be of any type. */
export interface SeenObject {
  value: unknown;
  /** Where in the body, e.g. `configurations[3]`; empty for the body itself. */
  at: string;
  exchange: Exchange;
}

export interface SeenObjects {
  configurations: readonly SeenObject[];
  instances: readonly SeenObject[];
  volumes: readonly SeenObject[];
  locations: readonly SeenObject[];
  /** The bodies of all answers of 400 and above. */
  errors: readonly SeenObject[];
}

type Kind = keyof SeenObjects;

/** The places of objects in a successful answer: the body itself, or a list under `field`. */
const PLACES: readonly { path: RegExp; methods: readonly string[]; kind: Kind; field?: string }[] = [
  {
    path: /^\/(configurations|availability)$/,
    methods: ['GET'],
    kind: 'configurations',
    field: 'configurations',
  },
  { path: /^\/instances$/, methods: ['GET'], kind: 'instances', field: 'instances' },
  { path: /^\/instances$/, methods: ['POST'], kind: 'instances' },
  { path: /^\/instances\/[^/]+$/, methods: ['GET', 'DELETE'], kind: 'instances' },
  { path: /^\/instances\/[^/]+\/(start|stop)$/, methods: ['POST'], kind: 'instances' },
  { path: /^\/volumes\/locations$/, methods: ['GET'], kind: 'locations', field: 'locations' },
  { path: /^\/volumes$/, methods: ['POST'], kind: 'volumes' },
  { path: /^\/volumes\/[^/]+$/, methods: ['GET'], kind: 'volumes' },
  { path: /^\/volumes\/[^/]+\/(attach|detach)$/, methods: ['POST'], kind: 'volumes' },
];

export function seenObjects(exchanges: readonly Exchange[]): SeenObjects {
  const seen: Record<Kind, SeenObject[]> = {
    configurations: [],
    instances: [],
    volumes: [],
    locations: [],
    errors: [],
  };
  for (const exchange of exchanges) {
    if ((exchange.answer?.status ?? 0) >= 400)
      seen.errors.push({ value: jsonOf(exchange), at: '', exchange });
    if (!isSuccess(exchange)) continue;
    const [path = ''] = exchange.request.path.split('?');
    const place = PLACES.find((row) => row.methods.includes(exchange.request.method) && row.path.test(path));
    if (place !== undefined) seen[place.kind].push(...objectsAt(exchange, place.field));
  }
  return seen;
}

function objectsAt(exchange: Exchange, field: string | undefined): SeenObject[] {
  const body = jsonOf(exchange);
  if (field === undefined) return [{ value: body, at: '', exchange }];
  const items = isObject(body) ? body[field] : undefined;
  if (!Array.isArray(items)) return [];
  return items.slice(0, MAX_ITEMS).map((value, index) => ({ value, at: `${field}[${index}]`, exchange }));
}
