import { z } from 'zod';
import { type HttpFault, httpFault, type More, type Trigger } from '../fault.ts';
import { patched, patchShape } from '../patch.ts';
import { rewriteEach, rewriteList, withText } from '../rewrite.ts';

type Json = Record<string, unknown>;

const INSTANCES = ['GET /instances/{id}', 'GET /instances'];
const OFFERS = ['GET /configurations', 'GET /availability'];
const LIST = ['GET /instances'];
const SHOWN = [...OFFERS, ...INSTANCES, 'GET /volumes/{id}'];

/** Changes each resource that an answer shows. */
function each<S extends z.ZodRawShape = Record<never, never>>(
  on: readonly string[],
  does: string,
  rule: string,
  change: (shown: Json, params: z.output<z.ZodObject<S>>, nth: number) => Json,
  more: More<S> = {},
): HttpFault<S> {
  return httpFault('answer', {
    on,
    does,
    rule,
    changesLists: true,
    ...more,
    answer: async ({ params, nth, resource }, ask) =>
      rewriteEach(await ask(), resource, (shown) => change(shown, params, nth)),
  });
}

/** Changes which resources a list has. */
function list<S extends z.ZodRawShape = Record<never, never>>(
  on: readonly string[],
  does: string,
  rule: string,
  change: (items: Json[], trigger: Trigger<z.output<z.ZodObject<S>>>) => Json[],
  more: More<S> = {},
): HttpFault<S> {
  return httpFault('answer', {
    on,
    does,
    rule,
    changesLists: true,
    ...more,
    answer: async (trigger, ask) => rewriteList(await ask(), (items) => change(items, trigger)),
  });
}

/** Changes the text of a body. */
function text(
  does: string,
  rule: string,
  change: (body: string) => [text: string, headers?: Record<string, string>],
  more: More<Record<never, never>> = {},
): HttpFault<Record<never, never>> {
  return httpFault('answer', {
    does,
    rule,
    ...more,
    async answer(_trigger, ask) {
      const response = await ask();
      return withText(response, ...change(await response.clone().text()));
    },
  });
}

const UNREADABLE = 'M: an unreadable answer proves nothing.';
const EMPTY_LIST = 'M: absence from a list proves nothing.';
const SOLD_OUT = 'O: a sold-out offer is in /configurations, not in /availability.';
const PRICES = 'O: prices are numbers, USD per hour.';

/** Changes some fields of a resource, if it has them. */
function changed(shown: Json, names: readonly string[], change: (value: unknown) => unknown): Json {
  const has = names.filter((name) => name in shown);
  return { ...shown, ...Object.fromEntries(has.map((name) => [name, change(shown[name])])) };
}

const moved = (value: unknown, ms: number): unknown =>
  typeof value === 'string' ? new Date(Date.parse(value) + ms).toISOString() : value;

export const answerFaults = {
  'truncated-json': text(
    'The body is cut in the middle, with a matching Content-Length: JSON that does not parse.',
    UNREADABLE,
    (body) => [body.slice(0, Math.floor(body.length / 2))],
  ),
  'trailing-garbage': text(
    'Text follows the JSON, as from a proxy that adds a comment.',
    UNREADABLE,
    (body) => [`${body}\n<!-- served by edge-7 -->`],
  ),
  'empty-body': text('A successful status without a body.', UNREADABLE, () => ['']),
  'wrong-content-type': text(
    'JSON with the content type of plain text.',
    'O: bodies are application/json.',
    (body) => [body, { 'content-type': 'text/plain' }],
    { reddens: ['WIRE-JSON-001'] },
  ),
  'unknown-status': each(
    INSTANCES,
    'The status is `status`, a word that is not in the contract.',
    'O: the status is one of eight words; an unknown one ends nothing.',
    (shown, { status }) => ({ ...shown, status }),
    { params: { status: z.string().default('REBALANCING') } },
  ),
  flapping: each(
    INSTANCES,
    'Every other answer shows `status`, by default OFFLINE.',
    'M: one observation ends nothing; a loss is confirmed.',
    (shown, { status }, nth) => (nth % 2 === 1 ? { ...shown, status } : shown),
    { params: { status: z.string().default('OFFLINE') }, times: 'sticky' },
  ),
  'wrong-status': each(
    INSTANCES,
    'The status is always `status`, by default ERROR.',
    'O: the status is what the platform says.',
    (shown, { status }) => ({ ...shown, status }),
    { params: { status: z.string().default('ERROR') } },
  ),
  'early-online': each(
    INSTANCES,
    'A PROVISIONING instance reads ONLINE, without an address.',
    'O: ONLINE means reachable by SSH.',
    (shown) => (shown['status'] === 'PROVISIONING' ? { ...shown, status: 'ONLINE' } : shown),
    { times: 'sticky', reddens: ['INS-IP-001', 'INS-ONLINE-001', 'SSH-LIVE-001'] },
  ),
  'no-address': each(
    INSTANCES,
    'An ONLINE instance has no public_ip and no ssh_port.',
    'O: an ONLINE instance has a public_ip.',
    ({ public_ip: _ip, ssh_port: _port, ...shown }) => shown,
  ),
  'price-as-text': each([...OFFERS, ...INSTANCES], 'price_per_hour is a string.', PRICES, (shown) =>
    changed(shown, ['price_per_hour'], String),
  ),
  'price-changes': each(
    [...OFFERS, ...INSTANCES],
    'price_per_hour and spot_price_per_hour are `factor` times what they were.',
    'M: an instance keeps its price, unless it is spot.',
    (shown, { factor }) =>
      changed(shown, ['price_per_hour', 'spot_price_per_hour'], (price) =>
        typeof price === 'number' ? price * factor : price,
      ),
    { params: { factor: z.number().default(2) }, times: 'sticky' },
  ),
  'negative-price': each(
    OFFERS,
    'price_per_hour is below zero.',
    PRICES,
    (shown) => ({ ...shown, price_per_hour: -1 }),
    { reddens: ['CFG-PRICE-001'] },
  ),
  'missing-field': each(
    SHOWN,
    'The field `field`, by default the status, is missing.',
    UNREADABLE,
    (shown, { field }) => Object.fromEntries(Object.entries(shown).filter(([name]) => name !== field)),
    { params: { field: z.string().default('status') } },
  ),
  'extra-fields': each(
    [...OFFERS, ...INSTANCES, 'POST /instances', 'GET /volumes/{id}'],
    'The answer has unknown fields. This is allowed.',
    'O: a client ignores fields that it does not know.',
    (shown) => ({ ...shown, x_rack: 'r-17', x_labels: { tier: 'gold' } }),
    { times: 'sticky' },
  ),
  'clock-skew': each(
    [...INSTANCES, 'POST /instances', 'GET /volumes/{id}'],
    'The provider’s clock is `s` seconds ahead, in created_at and updated_at; negative: behind.',
    'M: nothing is billed by the times of a provider.',
    (shown, { s }) => changed(shown, ['created_at', 'updated_at'], (at) => moved(at, s * 1_000)),
    { params: { s: z.number().default(3_600) }, times: 'sticky' },
  ),
  'status-late': httpFault('answer', {
    on: ['GET /instances/{id}'],
    does: 'A read returns its answer of at least `s` seconds ago, as from a lagging replica; until then its first answer.',
    rule: 'M: billing starts with the first observed running.',
    params: { s: z.number().min(0).default(30) },
    times: 'sticky',
    async answer({ request, memory, clock, params }, ask) {
      /** Earlier answers of this URL. */
      const past = (memory.get(request.url) as { at: number; response: Response }[] | undefined) ?? [];
      past.push({ at: clock.now(), response: await ask() });
      while (past[1] !== undefined && past[1].at <= clock.now() - params.s * 1_000) past.shift();
      memory.set(request.url, past);
      return (past[0] as (typeof past)[number]).response.clone();
    },
  }),
  'empty-list': list(LIST, 'A list is empty.', EMPTY_LIST, () => []),
  'partial-list': list(
    LIST,
    'One instance is missing from a list: the named one, or the last.',
    EMPTY_LIST,
    (items, { resource = items.at(-1)?.['id'] }) => items.filter(({ id }) => id !== resource),
  ),
  'list-lags': list(
    LIST,
    'Instances younger than `s` seconds are missing from a list.',
    EMPTY_LIST,
    (items, { clock, params }) =>
      items.filter((item) => Date.parse(String(item['created_at'])) <= clock.now() - params.s * 1_000),
    { params: { s: z.number().min(0).default(30) }, times: 'sticky' },
  ),
  'listed-twice': list(
    LIST,
    'A list shows each instance twice.',
    'M: an id is one instance, however often it is listed.',
    (items) => [...items, ...items],
  ),
  'foreign-instance': list(
    LIST,
    'A list shows an instance of another account.',
    'M: a foreign instance is reported, neither adopted nor destroyed.',
    (items, { params: { id }, clock }) => {
      const { configuration_id = 'gpu', region = 'nowhere', ...like } = items[0] ?? {};
      const created_at = new Date(clock.now()).toISOString();
      const foreign = { id, name: 'not-ours', status: 'ONLINE', created_at, configuration_id, region };
      return [...items, { ...like, ...foreign }];
    },
    { params: { id: z.string().default('ins-of-somebody-else') } },
  ),
  'available-without-room': httpFault('answer', {
    on: ['GET /availability'],
    does: '/availability lists every offer, also without capacity.',
    rule: 'O: /availability lists only what can be deployed now.',
    times: 'sticky',
    reddens: ['AVL-AGREE-001', 'AVL-TRUE-001'],
    async answer({ request: { url, headers } }, ask) {
      const region = new URL(url).searchParams.get('region');
      const isThere = ({ regions }: Json): boolean =>
        region === null || (Array.isArray(regions) && regions.includes(region));
      const all = await ask(new Request(url.replace('/availability', '/configurations'), { headers }));
      return rewriteList(all, (offers) => offers.filter(isThere));
    },
  }),
  'sold-out-left-out': list(
    ['GET /configurations'],
    'A sold-out offer is missing from /configurations.',
    SOLD_OUT,
    (offers) => offers.filter(({ available }) => available !== false),
    { times: 'sticky', reddens: ['CFG-OMIT-001'] },
  ),
  'sold-out': httpFault('answer', {
    on: [...OFFERS, 'POST /instances'],
    does: 'One offer, or all of them, is sold out: not available, and a create is answered 409.',
    rule: SOLD_OUT,
    params: { configuration: z.string().optional().meta({ description: 'Default: every offer.' }) },
    times: 'sticky',
    async answer({ request, params: { configuration } }, ask): Promise<Response> {
      const isSoldOut = (id: unknown): boolean => configuration === undefined || id === configuration;
      if (request.method === 'POST') {
        const sent = (await request
          .clone()
          .json()
          .catch(() => null)) as Json | null;
        if (typeof sent !== 'object' || sent === null || !isSoldOut(sent['configuration_id'])) return ask();
        const error = { code: 'capacity_unavailable', message: 'The offer is sold out.' };
        return Response.json({ error }, { status: 409 });
      }
      const isAvailability = new URL(request.url).pathname.endsWith('/availability');
      return rewriteList(await ask(), (offers) =>
        isAvailability
          ? offers.filter(({ id }) => !isSoldOut(id))
          : offers.map((offer) => (isSoldOut(offer['id']) ? { ...offer, available: false } : offer)),
      );
    },
  }),
  'offer-vanishes': list(
    OFFERS,
    'The offer `configuration`, by default the first, is missing from the lists.',
    SOLD_OUT,
    (offers, { params: { configuration = offers[0]?.['id'] } }) =>
      offers.filter(({ id }) => id !== configuration),
    {
      params: { configuration: z.string().optional() },
      times: 'sticky',
      reddens: ['AVL-REGION-004', 'CFG-FILTER-001'],
    },
  ),
  'answer-patch': httpFault('answer', {
    does: 'The answer is changed as you say: any field, any status, any header. With an `instance` or a `volume`, merge changes that resource, also in lists.',
    rule: 'O: every answer is as the contract describes it; a client checks what it reads.',
    params: patchShape,
    changesLists: true,
    answer: async ({ params, resource }, ask) => patched(await ask(), params, resource),
  }),
  'created-with-200': httpFault('answer', {
    on: ['POST /instances', 'POST /volumes'],
    does: 'A create answers 200 instead of 201.',
    rule: 'O: POST /instances answers 201.',
    async answer(_trigger, ask) {
      const response = await ask();
      const { headers } = response;
      return response.status === 201 ? new Response(response.body, { status: 200, headers }) : response;
    },
  }),
} as const satisfies Record<string, HttpFault>;
