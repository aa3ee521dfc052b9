import { z } from 'zod';
import type { HttpFault, Strike } from '../fault.ts';
import { patched, patchShape } from '../patch.ts';
import { rewriteEach, rewriteList, withText } from '../rewrite.ts';

type Json = Record<string, unknown>;

const none = z.object({});
const INSTANCES = ['GET /instances/{id}', 'GET /instances'];
const OFFERS = ['GET /configurations', 'GET /availability'];
const LISTS = ['GET /instances'];

type More<S extends z.ZodObject> = Partial<Pick<HttpFault<S>, 'params' | 'reddens' | 'times'>>;

function shownFault<S extends z.ZodObject>(
  row: Pick<HttpFault<S>, 'on' | 'does' | 'strikes' | 'answer'>,
  { params = none as unknown as S, ...more }: More<S> = {},
): HttpFault<S> {
  return { layer: 'answer', changesLists: true, ...row, params, ...more };
}

function field<S extends z.ZodObject = typeof none>(
  on: string[],
  does: string,
  strikes: string,
  change: (shown: Json, strike: Strike<z.infer<S>>) => Json,
  more?: More<S>,
): HttpFault<S> {
  const answer: HttpFault<S>['answer'] = async (strike, ask) =>
    rewriteEach(await ask(), strike.resource, (shown) => change(shown, strike));
  return shownFault({ on, does, strikes, answer }, more);
}

function list<S extends z.ZodObject = typeof none>(
  on: string[],
  does: string,
  strikes: string,
  change: (items: Json[], strike: Strike<z.infer<S>>) => Json[],
  more?: More<S>,
): HttpFault<S> {
  const answer: HttpFault<S>['answer'] = async (strike, ask) =>
    rewriteList(await ask(), (items) => change(items, strike));
  return shownFault({ on, does, strikes, answer }, more);
}

function text(
  row: Pick<HttpFault, 'does' | 'strikes' | 'reddens'> & { on?: string[] },
  change: (body: string) => [text: string, headers?: Record<string, string>],
): HttpFault<typeof none> {
  return {
    layer: 'answer',
    on: ['*'],
    params: none,
    ...row,
    async answer(_strike, ask): Promise<Response> {
      const response = await ask();
      return withText(response, ...change(await response.clone().text()));
    },
  };
}

const UNREADABLE = 'M: an unreadable answer proves nothing.';
const EMPTY_LIST = 'M: absence from a list proves nothing.';
const isOf = (resource: string | undefined) => (item: Json) =>
  resource === undefined || item['id'] === resource;

function moved(value: unknown, ms: number): unknown {
  return typeof value === 'string' ? new Date(Date.parse(value) + ms).toISOString() : value;
}

/** An earlier answer of one URL. */
interface Past {
  at: number;
  response: Response;
}

const statusLate: HttpFault<z.ZodObject<{ s: z.ZodDefault<z.ZodNumber> }>> = {
  layer: 'answer',
  on: ['GET /instances/{id}'],
  params: z.object({ s: z.number().min(0).default(30) }),
  times: 'sticky',
  does: 'A read returns its answer of at least `s` seconds ago, as from a lagging replica; until then its first answer.',
  strikes: 'M: billing starts with the first observed running.',
  async answer({ request, memory, clock, params }, ask) {
    const past = (memory.get(request.url) as Past[] | undefined) ?? [];
    past.push({ at: clock.now(), response: await ask() });
    const isOld = ({ at }: Past): boolean => at <= clock.now() - params.s * 1_000;
    while (past[1] !== undefined && isOld(past[1])) past.shift();
    memory.set(request.url, past);
    return (past[0] as Past).response.clone();
  },
};

export const answerFaults = {
  'truncated-json': text(
    {
      does: 'The body is cut in the middle, with a matching Content-Length: JSON that does not parse.',
      strikes: UNREADABLE,
    },
    (body) => [body.slice(0, Math.floor(body.length / 2))],
  ),
  'trailing-garbage': text(
    { does: 'Text follows the JSON, as from a proxy that adds a comment.', strikes: UNREADABLE },
    (body) => [`${body}\n<!-- served by edge-7 -->`],
  ),
  'empty-body': text({ does: 'A successful status without a body.', strikes: UNREADABLE }, () => ['']),
  'wrong-content-type': text(
    {
      does: 'JSON with the content type of plain text.',
      strikes: 'O: bodies are application/json.',
      reddens: ['WIRE-JSON-001'],
    },
    (body) => [body, { 'content-type': 'text/plain' }],
  ),
  'unknown-status': field(
    INSTANCES,
    'The status is `status`, a word that is not in the contract.',
    'O: the status is one of eight words; an unknown one ends nothing.',
    (shown, { params }) => ({ ...shown, status: params.status }),
    { params: z.object({ status: z.string().default('REBALANCING') }) },
  ),
  flapping: field(
    INSTANCES,
    'Every other answer shows `status`, by default OFFLINE.',
    'M: one observation ends nothing; a loss is confirmed.',
    (shown, { nth, params }) => (nth % 2 === 1 ? { ...shown, status: params.status } : shown),
    { params: z.object({ status: z.string().default('OFFLINE') }), times: 'sticky' },
  ),
  'wrong-status': field(
    INSTANCES,
    'The status is always `status`, by default ERROR.',
    'O: the status is what the platform says.',
    (shown, { params }) => ({ ...shown, status: params.status }),
    { params: z.object({ status: z.string().default('ERROR') }) },
  ),
  'early-online': field(
    INSTANCES,
    'A PROVISIONING instance reads ONLINE, without an address.',
    'O: ONLINE means reachable by SSH.',
    (shown) => (shown['status'] === 'PROVISIONING' ? { ...shown, status: 'ONLINE' } : shown),
    { times: 'sticky', reddens: ['INS-IP-001', 'INS-ONLINE-001', 'SSH-LIVE-001'] },
  ),
  'no-address': field(
    INSTANCES,
    'An ONLINE instance has no public_ip and no ssh_port.',
    'O: an ONLINE instance has a public_ip.',
    ({ public_ip: _ip, ssh_port: _port, ...shown }) => shown,
  ),
  'address-changes': field(
    INSTANCES,
    'The public_ip is replaced by `public_ip`.',
    'M: an address that changes is proved again.',
    (shown, { params }) =>
      shown['public_ip'] === undefined ? shown : { ...shown, public_ip: params.public_ip },
    { params: z.object({ public_ip: z.string().default('198.51.100.77') }) },
  ),
  'another-instance': field(
    ['GET /instances/{id}'],
    'The answer has the id of another instance.',
    'M: an unreadable answer proves nothing.',
    (shown, { params }) => ({ ...shown, id: params.id }),
    { params: z.object({ id: z.string().default('ins-of-somebody-else') }) },
  ),
  'price-as-text': field(
    [...OFFERS, ...INSTANCES],
    'price_per_hour is a string.',
    'O: prices are numbers, USD per hour.',
    (shown) =>
      shown['price_per_hour'] === undefined
        ? shown
        : { ...shown, price_per_hour: String(shown['price_per_hour']) },
  ),
  'price-changes': field(
    [...OFFERS, ...INSTANCES],
    'price_per_hour and spot_price_per_hour are `factor` times what they were.',
    'M: an instance keeps its price, unless it is spot.',
    (shown, { params }) => ({
      ...shown,
      ...Object.fromEntries(
        ['price_per_hour', 'spot_price_per_hour'].flatMap((name) => {
          const price = shown[name];
          return typeof price === 'number' ? [[name, price * params.factor]] : [];
        }),
      ),
    }),
    { params: z.object({ factor: z.number().default(2) }), times: 'sticky' },
  ),
  'negative-price': field(
    OFFERS,
    'price_per_hour is below zero.',
    'O: prices are numbers, USD per hour.',
    (shown) => ({ ...shown, price_per_hour: -1 }),
    { reddens: ['CFG-PRICE-001'] },
  ),
  'missing-field': field(
    [...OFFERS, ...INSTANCES, 'GET /volumes/{id}'],
    'The field `field`, by default the status, is missing.',
    UNREADABLE,
    (shown, { params }) =>
      Object.fromEntries(Object.entries(shown).filter(([name]) => name !== params.field)),
    { params: z.object({ field: z.string().default('status') }) },
  ),
  'null-field': field(
    [...OFFERS, ...INSTANCES, 'GET /volumes/{id}'],
    'The field `field`, by default the private_ip, is null.',
    'O: an optional field without a value is left out.',
    (shown, { params }) => ({ ...shown, [params.field]: null }),
    { params: z.object({ field: z.string().default('private_ip') }) },
  ),
  'extra-fields': field(
    [...OFFERS, ...INSTANCES, 'POST /instances', 'GET /volumes/{id}'],
    'The answer has unknown fields. This is allowed.',
    'O: a client ignores fields that it does not know.',
    (shown) => ({ ...shown, x_rack: 'r-17', x_labels: { tier: 'gold' } }),
    { times: 'sticky' },
  ),
  'clock-skew': field(
    [...INSTANCES, 'POST /instances', 'GET /volumes/{id}'],
    'The provider’s clock is `s` seconds ahead, in created_at and updated_at; negative: behind.',
    'M: nothing is billed by the times of a provider.',
    (shown, { params }) => ({
      ...shown,
      ...Object.fromEntries(
        ['created_at', 'updated_at']
          .filter((name) => name in shown)
          .map((name) => [name, moved(shown[name], params.s * 1_000)]),
      ),
    }),
    { params: z.object({ s: z.number().default(3_600) }), times: 'sticky' },
  ),
  'status-late': statusLate,
  'empty-list': list(LISTS, 'A list is empty.', EMPTY_LIST, () => []),
  'partial-list': list(
    LISTS,
    'One instance is missing from a list: the named one, or the last.',
    'M: absence from a list proves nothing.',
    (items, { resource }) =>
      resource === undefined ? items.slice(0, -1) : items.filter((item) => !isOf(resource)(item)),
  ),
  'list-lags': list(
    LISTS,
    'Instances younger than `s` seconds are missing from a list.',
    EMPTY_LIST,
    (items, { clock, params }) =>
      items.filter((item) => Date.parse(String(item['created_at'])) <= clock.now() - params.s * 1_000),
    { params: z.object({ s: z.number().min(0).default(30) }), times: 'sticky' },
  ),
  'listed-twice': list(
    LISTS,
    'A list shows each instance twice.',
    'M: an id is one instance, however often it is listed.',
    (items) => [...items, ...items],
  ),
  'foreign-instance': list(
    LISTS,
    'A list shows an instance of another account.',
    'M: a foreign instance is reported, neither adopted nor destroyed.',
    (items, { params, clock }) => [
      ...items,
      {
        ...items[0],
        id: params.id,
        name: 'not-ours',
        configuration_id: items[0]?.['configuration_id'] ?? 'gpu',
        region: items[0]?.['region'] ?? 'nowhere',
        status: 'ONLINE',
        created_at: new Date(clock.now()).toISOString(),
      },
    ],
    { params: z.object({ id: z.string().default('ins-of-somebody-else') }) },
  ),
  'available-without-room': {
    layer: 'answer',
    on: ['GET /availability'],
    params: none,
    times: 'sticky',
    does: '/availability lists every offer, also without capacity.',
    strikes: 'O: /availability lists only what can be deployed now.',
    reddens: ['AVL-AGREE-001', 'AVL-TRUE-001'],
    async answer({ request }, ask) {
      const { url, headers } = request;
      const region = new URL(url).searchParams.get('region');
      const isThere = ({ regions }: Json): boolean =>
        region === null || (Array.isArray(regions) && regions.includes(region));
      const all = await ask(new Request(url.replace('/availability', '/configurations'), { headers }));
      return rewriteList(all, (offers) => offers.filter(isThere));
    },
  },
  'sold-out-left-out': list(
    ['GET /configurations'],
    'A sold-out offer is missing from /configurations.',
    'O: a sold-out offer is in /configurations, not in /availability.',
    (offers) => offers.filter(({ available }) => available !== false),
    { times: 'sticky', reddens: ['CFG-OMIT-001'] },
  ),
  'sold-out': {
    layer: 'answer',
    on: [...OFFERS, 'POST /instances'],
    params: z.object({
      configuration: z.string().optional().meta({ description: 'Default: every offer.' }),
    }),
    times: 'sticky',
    does: 'One offer, or all of them, is sold out: not available, and a create is answered 409.',
    strikes: 'O: a sold-out offer is in /configurations, not in /availability.',
    async answer({ request, params: { configuration } }, ask): Promise<Response> {
      const isSoldOut = (id: unknown): boolean => configuration === undefined || id === configuration;
      if (request.method === 'POST') {
        const sent: unknown = await request
          .clone()
          .json()
          .catch(() => undefined);
        if (typeof sent !== 'object' || sent === null) return ask();
        const { configuration_id: id } = sent as Json;
        const error = { code: 'capacity_unavailable', message: 'The offer is sold out.' };
        return isSoldOut(id) ? Response.json({ error }, { status: 409 }) : ask();
      }
      const isAvailability = new URL(request.url).pathname.endsWith('/availability');
      return rewriteList(await ask(), (offers) =>
        isAvailability
          ? offers.filter(({ id }) => !isSoldOut(id))
          : offers.map((offer) => (isSoldOut(offer['id']) ? { ...offer, available: false } : offer)),
      );
    },
  } satisfies HttpFault<z.ZodObject<{ configuration: z.ZodOptional<z.ZodString> }>>,
  'offer-vanishes': list(
    OFFERS,
    'The offer `configuration`, by default the first, is missing from the lists.',
    'O: a sold-out offer is in /configurations, not in /availability.',
    (offers, { params: { configuration = offers[0]?.['id'] } }) =>
      offers.filter(({ id }) => id !== configuration),
    {
      params: z.object({ configuration: z.string().optional() }),
      times: 'sticky',
      reddens: ['AVL-REGION-004', 'CFG-FILTER-001'],
    },
  ),
  'answer-patch': shownFault(
    {
      on: ['*'],
      does: 'The answer is changed as you say: any field, any status, any header. With an `instance` or a `volume` merge and patch change that resource, also in lists.',
      strikes: 'O: every answer is as the contract describes it; a client checks what it reads.',
      answer: async ({ params, resource }, ask) => patched(await ask(), params, resource),
    },
    { params: z.object(patchShape) },
  ),
  'created-with-200': {
    layer: 'answer',
    on: ['POST /instances', 'POST /volumes'],
    params: none,
    does: 'A create answers 200 instead of 201.',
    strikes: 'O: POST /instances answers 201.',
    async answer(_strike, ask): Promise<Response> {
      const response = await ask();
      const { headers } = response;
      return response.status === 201 ? new Response(response.body, { status: 200, headers }) : response;
    },
  },
} as const satisfies Record<string, HttpFault>;
