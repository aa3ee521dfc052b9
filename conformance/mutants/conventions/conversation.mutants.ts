import { onAnswers, onRule, refusal, withFields } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';
import type { ReferenceRequest, WireAnswer } from '../reference/exchange.ts';

const GET = 'GET /instances/{instanceId}';
const NO_REGION = 'berth-conf-nowhere';

/** Changes the answers to requests without a route. */
function onNoRoute(
  change: (answer: WireAnswer, request: ReferenceRequest) => WireAnswer | undefined,
): Mutant['behave'] {
  return onRule('answer', (usual, request) =>
    request.route === undefined ? change(usual, request) : undefined,
  );
}

const isOdd = ({ path }: ReferenceRequest): boolean => path.includes('%') || path.length > 500;

const conventionMutants: readonly Mutant[] = [
  {
    id: 'errors-as-plain-text',
    breaks: 'Bodies are application/json.',
    reddens: ['WIRE-JSON-001'],
    behave: onAnswers([GET], (answer) =>
      answer.status === 404 ? { ...answer, headers: { 'content-type': 'text/plain' } } : undefined,
    ),
  },
  {
    id: 'deleted-with-a-body',
    breaks: 'DELETE of a volume answers 204 without a body.',
    reddens: ['VOL-DELETE-002', 'WIRE-JSON-001'],
    behave: onAnswers(['DELETE /volumes/{volumeId}'], (answer) =>
      answer.status === 204 ? { ...answer, raw: '{"deleted":true}' } : undefined,
    ),
  },
  {
    id: 'body-of-an-error-cut-off',
    breaks: 'Bodies are JSON.',
    reddens: ['ERR-ENVELOPE-001', 'WIRE-BODY-001'],
    behave: onNoRoute((answer) => ({ ...answer, raw: '{"error": {"code": "not_fou' })),
  },
  {
    id: 'locations-as-a-bare-list',
    breaks: 'A list is an object with a field.',
    reddens: ['WIRE-BODY-001'],
    behave: onAnswers(['GET /volumes/locations'], (answer, { headers }) =>
      headers['user-agent']?.endsWith('catalog/storage-tier') ? { ...answer, json: [] } : undefined,
    ),
  },
  {
    id: 'plain-http',
    breaks: 'The endpoints are reachable over HTTPS.',
    reddens: ['WIRE-HTTPS-001'],
    options: { baseUrl: 'http://reference.test/v1' },
    behave: onRule('answer', (usual) => usual),
  },
  {
    id: 'no-version-in-the-path',
    breaks: 'The base path carries the major version /v1.',
    reddens: ['WIRE-VERSION-001'],
    options: { baseUrl: 'https://reference.test/api' },
    behave: onRule('answer', (usual) => usual),
  },
  {
    id: 'hangs-on-an-unknown-region',
    takesMs: 92_000,
    breaks: 'The endpoints are reachable.',
    reddens: ['WIRE-REACH-001'],
    behave: onRule('answerDelayMs', (_usual, { query }) =>
      query.get('region') === NO_REGION ? 60_000 : undefined,
    ),
  },
  {
    id: 'error-in-a-200',
    breaks: 'A 200 carrying an embedded error is not allowed.',
    reddens: ['WIRE-STATUS-001'],
    behave: onAnswers(['GET /availability'], (answer, { query }) =>
      query.get('region') === NO_REGION
        ? withFields(answer, { error: { code: 'unknown_region', message: 'There is no such region.' } })
        : undefined,
    ),
  },
  {
    id: 'local-time',
    breaks: 'Timestamps are RFC 3339 in UTC.',
    reddens: ['WIRE-TIME-001'],
    behave: onRule('timestamp', (_usual, wallMs) =>
      new Date(wallMs + 7_200_000).toISOString().replace('Z', '+02:00'),
    ),
  },
  {
    id: 'local-time-that-says-utc',
    breaks: 'Timestamps are in UTC.',
    reddens: ['WIRE-TIME-001'],
    behave: onRule('timestamp', (_usual, wallMs) => new Date(wallMs + 3 * 3_600_000).toISOString()),
  },
];

const errorMutants: readonly Mutant[] = [
  {
    id: 'details-as-text',
    breaks: 'details is an object.',
    reddens: ['ERR-ENVELOPE-001'],
    behave: onRule('errorBody', (_usual, code, message, details) =>
      details === undefined ? undefined : { error: { code, message, details: JSON.stringify(details) } },
    ),
  },
  {
    id: 'phrase-as-a-code',
    breaks: 'code is machine-readable.',
    reddens: ['ERR-CODE-001'],
    behave: onRule('errorBody', (_usual, code, message) =>
      code === 'not_found' ? { error: { code: 'Not Found', message } } : undefined,
    ),
  },
  {
    id: 'code-with-a-number-of-its-own',
    breaks: 'code is stable.',
    reddens: ['ERR-CODE-002'],
    behave: (rules, hit) => {
      let count = 0;
      return {
        ...rules,
        errorBody(code, message, details) {
          if (code !== 'not_found') return rules.errorBody(code, message, details);
          hit();
          return rules.errorBody(`not_found_${++count}`, message, details);
        },
      };
    },
  },
  {
    id: 'stack-trace-as-a-message',
    breaks: 'message is human-readable.',
    reddens: ['ERR-MESSAGE-001'],
    behave: onRule('errorBody', (_usual, code, message) =>
      code === 'invalid_request'
        ? { error: { code, message: `Error: ${message}\n    at parse (/srv/app/body.js:31:11)` } }
        : undefined,
    ),
  },
  {
    id: 'catch-all-route',
    breaks: 'What does not exist is 404.',
    reddens: ['ERR-ROUTE-001'],
    behave: onNoRoute(({ status }, { method }) =>
      status === 404 && method === 'GET'
        ? { status: 200, headers: { 'content-type': 'application/json' }, json: { app: 'console' } }
        : undefined,
    ),
  },
  {
    id: 'odd-ids-are-unprocessable',
    breaks: 'Malformed or invalid is 400.',
    reddens: ['ERR-ID-001'],
    behave: onAnswers([GET], (_answer, request) =>
      isOdd(request) ? refusal(422, 'unprocessable') : undefined,
    ),
  },
  {
    id: 'broken-json-is-unprocessable',
    breaks: 'A malformed request is 400.',
    reddens: ['ERR-400-001', 'NEG-JSON-001'],
    behave: onAnswers(['POST /instances'], (answer, { text, headers }) =>
      answer.status === 400 && headers['content-type'] === 'application/json' && !isJson(text)
        ? refusal(422, 'unprocessable')
        : undefined,
    ),
  },
  {
    id: 'another-content-type-crashes',
    breaks: 'A malformed request is 400.',
    reddens: ['ERR-400-002'],
    behave: onAnswers(['POST /instances'], (_answer, { headers }) =>
      headers['content-type'] === 'text/plain' ? refusal(500, 'internal') : undefined,
    ),
  },
];

function isJson(text: string): boolean {
  try {
    return JSON.parse(text) !== undefined;
  } catch {
    return false;
  }
}

/** Faults in the conventions of every request and answer. */
export const conversationMutants: readonly Mutant[] = [...conventionMutants, ...errorMutants];
