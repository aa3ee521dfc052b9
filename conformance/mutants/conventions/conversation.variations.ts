import type { Variation } from '../mutant.ts';
import { ApiError } from '../reference/errors.ts';
import type { ReferenceRequest } from '../reference/exchange.ts';

const TOKENS = ['eu-north', 'us-east', 'ap-south'];

const toCapitals = (token: string): string => token.toUpperCase().replace('-', '_');
const fromCapitals = (token: string): string => token.toLowerCase().replace('_', '-');

/** Changes every string in a JSON value. */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, mapTexts(item, change)]));
}

const isOddId = ({ path }: ReferenceRequest): boolean => /[^\w/-]/.test(path) || path.length > 200;

let ofStrangers: string | undefined;

/** Ten thousand instances of 1.9 kB each, as list items. */
function strangers(): string {
  ofStrangers ??= Array.from({ length: 10_000 }, (_, index) =>
    JSON.stringify({
      id: `stranger-${index}`,
      name: `machine-${index}`,
      configuration_id: 'cpu-small',
      region: 'eu-north',
      status: 'ONLINE',
      public_ip: '192.0.2.1',
      created_at: '2025-01-01T00:00:00Z',
      updated_at: '2025-01-01T00:00:00Z',
      x_labels: 'x'.repeat(1_650),
    }),
  ).join();
  return ofStrangers;
}

/** Lawful variations in the conventions. */
export const conversationVariations: readonly Variation[] = [
  {
    id: 'charset-and-other-headers',
    why: 'Content-Type: application/json may have a charset, and nothing forbids other headers',
    behave: (rules) => ({
      ...rules,
      answer(request, given) {
        const usual = rules.answer(request, given);
        const typed: Record<string, string> =
          usual.json === undefined ? {} : { 'content-type': 'Application/JSON; charset=UTF-8' };
        return { ...usual, headers: { ...usual.headers, ...typed, 'x-powered-by': 'another', etag: '"1"' } };
      },
    }),
  },
  {
    id: 'codes-of-its-own',
    why: 'the full set of error codes is not shown',
    warns: ['AVL-SOLDOUT-002'],
    behave: (rules) => ({
      ...rules,
      errorBody: (code, message, details) =>
        rules.errorBody(`E_${code.toUpperCase()}.${code.length}`, message, details),
    }),
  },
  {
    id: 'one-word-for-both',
    why: 'one word is a message too',
    behave: (rules) => ({
      ...rules,
      errorBody: (code, message, details) =>
        code === 'unauthorized'
          ? { error: { code: 'Unauthorized', message: 'Unauthorized' } }
          : rules.errorBody(code, message, details),
    }),
  },
  {
    id: 'regions-in-capitals',
    why: 'the form of a region token is not shown',
    behave: (rules) => ({
      ...rules,
      readBody: (request) =>
        mapTexts(rules.readBody(request), (text) =>
          TOKENS.map(toCapitals).includes(text) ? fromCapitals(text) : text,
        ),
      matchesRegion: (regions, wanted) =>
        rules.matchesRegion(regions, wanted === null ? null : fromCapitals(wanted)),
      answer(request, given) {
        const usual = rules.answer(request, given);
        if (usual.json === undefined) return usual;
        const shown = mapTexts(usual.json, (text) => (TOKENS.includes(text) ? toCapitals(text) : text));
        return { ...usual, json: shown };
      },
    }),
  },
  {
    id: 'malformed-ids-are-400',
    why: 'an id that cannot be one is malformed',
    behave: (rules) => ({
      ...rules,
      answer: (request, given) =>
        given.status === 404 && isOddId(request)
          ? { ...given, status: 400, json: rules.errorBody('malformed_id', 'This is no id.', undefined) }
          : rules.answer(request, given),
    }),
  },
  {
    id: 'firewall-in-front',
    why: 'the client asks for no ids but those that it was given',
    behave: (rules) => ({
      ...rules,
      answer(request, given) {
        const status = /%27|%22/.test(request.path) ? 403 : request.path.length > 500 ? 414 : undefined;
        if (status === undefined) return rules.answer(request, given);
        return { status, headers: { 'content-type': 'text/html' }, raw: `<html><h1>${status}</h1></html>` };
      },
    }),
  },
  {
    id: 'clock-that-is-wrong-by-minutes',
    why: 'how right a clock has to be is not said',
    behave: (rules) => ({ ...rules, timestamp: (wallMs) => rules.timestamp(wallMs + 12 * 60_000) }),
  },
  {
    id: 'server-a-day-ahead',
    why: 'created_at is compared with the Date of the same server',
    behave: (rules) => ({
      ...rules,
      timestamp: (wallMs) => rules.timestamp(wallMs + 86_400_000),
      answer(request, given) {
        const usual = rules.answer(request, given);
        const created = (usual.json as { created_at?: string } | undefined)?.created_at;
        if (created === undefined) return usual;
        return { ...usual, headers: { ...usual.headers, date: new Date(created).toUTCString() } };
      },
    }),
  },
  {
    id: 'ten-thousand-other-instances',
    why: 'an account may have as many as it likes',
    behave: (rules) => ({
      ...rules,
      answer(request, given) {
        const usual = rules.answer(request, given);
        if (request.route !== 'GET /instances' || usual.status !== 200 || request.query.has('region'))
          return usual;
        const own = JSON.stringify((usual.json as { instances: unknown[] }).instances).slice(1, -1);
        return { ...usual, raw: `{"instances":[${strangers()}${own === '' ? '' : `,${own}`}]}` };
      },
    }),
  },
  {
    id: 'unknown-regions-are-400',
    why: 'what is asked of a region that does not exist is invalid',
    behave: (rules) => ({
      ...rules,
      matchesRegion(regions, wanted) {
        if (wanted !== null && !TOKENS.includes(wanted))
          throw new ApiError(400, 'unknown_region', `There is no region ${wanted}.`);
        return rules.matchesRegion(regions, wanted);
      },
    }),
  },
  {
    id: 'other-content-types-are-415',
    why: 'HTTP has a status of its own for it',
    behave: (rules) => ({
      ...rules,
      answer: (request, given) =>
        request.headers['content-type'] === 'text/plain' && given.status === 400
          ? { ...given, status: 415, json: rules.errorBody('unsupported_type', 'Send JSON.', undefined) }
          : rules.answer(request, given),
    }),
  },
  {
    id: 'regions-that-are-open-now',
    why: 'the regions of an offer may be those in which it is deployable',
    behave: (rules) => ({
      ...rules,
      regionsShown: (offer, deployable) => (deployable.length > 0 ? deployable : [...offer.free.keys()]),
    }),
  },
  {
    id: 'regions-narrowed-to-the-filter',
    why: 'an offer that was asked for by region may show that one only',
    behave: (rules) => ({
      ...rules,
      answer(request, given) {
        const usual = rules.answer(request, given);
        const region = request.query.get('region');
        if (request.route !== 'GET /availability' || region === null || usual.status !== 200) return usual;
        const { configurations = [] } = usual.json as { configurations?: object[] };
        return {
          ...usual,
          json: { configurations: configurations.map((one) => ({ ...one, regions: [region] })) },
        };
      },
    }),
  },
  {
    id: 'region-of-a-list-ignored',
    why: 'an orchestrator with globally unique instance ids may ignore the region',
    warns: ['INS-LIST-002'],
    behave(rules) {
      let isList = false;
      return {
        ...rules,
        needsCredential(request) {
          isList = request.route === 'GET /instances';
          return rules.needsCredential(request);
        },
        matchesRegion: (regions, wanted) => isList || rules.matchesRegion(regions, wanted),
      };
    },
  },
  {
    id: 'credential-before-all',
    why: 'a token endpoint that is not there need not say so to strangers',
    behave: (rules) => ({ ...rules, needsCredential: () => true }),
  },
  {
    id: 'sold-between-two-reads',
    why: 'the inventory is real-time',
    behave(rules) {
      let reads = 0;
      return {
        ...rules,
        isAvailable: (offer, region) =>
          rules.isAvailable(offer, region) && !(offer.id === 'cpu-spot' && reads === 1),
        answer(request, given) {
          if (request.route === 'GET /configurations') reads++;
          return rules.answer(request, given);
        },
      };
    },
  },
  {
    id: 'prices-that-move',
    why: 'prices may be dynamic',
    behave(rules) {
      let shownCount = 0;
      return {
        ...rules,
        showOffer: (offer, shown, list) => ({
          ...rules.showOffer(offer, shown, list),
          ...(offer.id === 'cpu-spot' && { spot_price_per_hour: 0.01 + (++shownCount % 7) / 1000 }),
        }),
      };
    },
  },
  {
    id: 'absent-tiers-are-501',
    why: 'an endpoint that is not there may say so',
    options: { volumes: false },
    behave: (rules) => ({
      ...rules,
      answer: (request, given) =>
        given.status === 404 && /^\/(volumes|auth)\//.test(request.path)
          ? {
              ...given,
              status: 501,
              json: rules.errorBody('not_implemented', 'This is not offered.', undefined),
            }
          : rules.answer(request, given),
    }),
  },
];
