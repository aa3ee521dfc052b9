import { countAtOnce, onAnswers, onRule, refusal, withFields } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';
import type { WireAnswer } from '../reference/exchange.ts';

const CREATE = 'POST /instances';
const GET = 'GET /instances/{instanceId}';
const LIST = 'GET /instances';

/** Faults in creating and reading instances. */
export const createMutants: readonly Mutant[] = [
  {
    id: 'create-answers-200',
    breaks: 'POST /instances answers 201.',
    reddens: ['INS-CREATE-001'],
    behave: onAnswers([CREATE], (answer) => (answer.status === 201 ? { ...answer, status: 200 } : undefined)),
  },
  {
    id: 'created-online',
    breaks: 'The instance in the answer to a create is PROVISIONING.',
    reddens: ['INS-CREATE-002'],
    behave: onAnswers([CREATE], (answer) =>
      answer.status === 201 ? withFields(answer, { status: 'ONLINE', public_ip: '127.0.0.1' }) : undefined,
    ),
  },
  {
    id: 'create-waits-for-the-boot',
    takesMs: 745_000,
    breaks: '201 is returned immediately, without waiting for boot.',
    reddens: ['INS-CREATE-003'],
    behave: onRule('answerDelayMs', (_usual, { route }) => (route === CREATE ? 20_000 : undefined)),
  },
  {
    id: 'create-makes-two-under-other-names',
    breaks: 'POST /instances makes the Instance that it answers with, and no other.',
    reddens: ['INS-ONE-001'],
    behave: onRule('namesOfTwins', () => ['vm-7f3a']),
  },
  {
    id: 'flavour-in-place-of-the-offer',
    breaks: 'configuration_id is the offer that the instance was deployed from.',
    reddens: ['INS-CREATE-004'],
    behave: onRule('showInstance', (shown, { offer }) => ({
      ...shown,
      configuration_id: `flavor-${offer.vcpus}`,
    })),
  },
  {
    id: 'id-of-the-server-once-online',
    breaks: 'The id of an instance is the one that its create answered with.',
    reddens: ['INS-ID-001'],
    behave: onRule('showInstance', (shown, { status, id }, _shown, { route }) =>
      status === 'ONLINE' && route === GET ? { ...shown, id: `server-${id}` } : undefined,
    ),
  },
  {
    id: 'list-lags-behind-creates',
    breaks: 'GET /instances lists the instances.',
    reddens: ['INS-LIST-003', 'INS-LIST-005'],
    behave: (rules, hit, clock) => ({
      ...rules,
      isListed(instance) {
        const isYoung = clock.wall() - instance.createdAtMs < 120_000;
        if (isYoung) hit();
        return !isYoung;
      },
    }),
  },
  {
    id: 'the-list-is-its-first-page',
    breaks: 'GET /instances lists every instance.',
    reddens: ['INS-LIST-005'],
    behave: onAnswers([LIST], (answer) =>
      answer.status === 200 && listOf(answer).length > 2
        ? withList(answer, listOf(answer).slice(0, 2))
        : undefined,
    ),
  },
  {
    id: 'pages-overlap',
    breaks: 'GET /instances lists each instance once.',
    reddens: ['INS-LIST-005'],
    behave: onAnswers([LIST], (answer) => {
      if (answer.status !== 200 || listOf(answer).length < 3) return undefined;
      return withList(answer, [...listOf(answer), ...listOf(answer).slice(-1)]);
    }),
  },
  {
    id: 'regions-are-listed-of-the-oldest-only',
    breaks: 'GET /instances lists every instance, in each region.',
    reddens: ['INS-LIST-005'],
    behave: (rules, hit, clock) => {
      let all: List['instances'] = [];
      return onAnswers([LIST], (answer, { query }) => {
        const region = query.get('region');
        if (region === null && answer.status === 200) all = listOf(answer);
        const isOther = region !== null && region !== all[0]?.['region'];
        return isOther && all.length > 2 ? withList(answer, []) : undefined;
      })(rules, hit, clock);
    },
  },
  {
    id: 'list-shows-another-status',
    breaks: 'Status values are accurate.',
    reddens: ['INS-LIST-004'],
    behave: onRule('showInstance', (shown, { status }, _shown, { route }) =>
      route === LIST && status === 'ONLINE' ? { ...shown, status: 'PROVISIONING' } : undefined,
    ),
  },
  {
    id: 'created-at-moves',
    breaks: 'created_at is when the instance was created.',
    reddens: ['INS-TIME-001'],
    behave: onRule('showInstance', (shown, { status }) =>
      status === 'ONLINE' ? { ...shown, created_at: shown['updated_at'] } : undefined,
    ),
  },
  {
    id: 'updated-at-goes-back',
    breaks: 'updated_at is when the instance was updated.',
    reddens: ['INS-TIME-002'],
    alsoIn: ['stop'],
    behave: onRule('updatedAt', (_usual, { status, createdAtMs }) =>
      status === 'STOPPING' ? createdAtMs + 1 : undefined,
    ),
  },
  {
    id: 'updated-at-stands-still',
    breaks: 'updated_at is when the instance was updated.',
    reddens: ['INS-TIME-003'],
    behave: onRule('updatedAt', (_usual, { createdAtMs }) => createdAtMs),
  },
  {
    id: 'error-without-a-word',
    breaks: 'ERROR carries the error text.',
    reddens: ['INS-ERROR-001', 'INS-READY-001', 'INS-READY-002', 'RACE-LIVE-001'],
    behave: (rules, hit) => ({
      ...rules,
      statusAfter: (_instance, next) => (next === 'ONLINE' ? 'ERROR' : next),
      errorText() {
        hit();
        return undefined;
      },
    }),
  },
  {
    id: 'spot-without-a-price',
    breaks: 'price_per_hour is required for dynamically priced instances.',
    reddens: ['INS-PRICE-001'],
    run: { offer: 'cpu-spot' },
    behave: onRule('showInstance', ({ price_per_hour: _, ...shown }, { offer }) =>
      offer.instanceType === 'SPOT' ? shown : undefined,
    ),
  },
  {
    id: 'one-poll-in-fifteen-seconds',
    isSeenAtPaceOnly: true,
    breaks: 'A rate limit accommodates one poll per active instance per 10 seconds.',
    reddens: ['INS-RATE-001'],
    behave: (rules, hit, clock) => {
      const last = new Map<string, number>();
      return {
        ...rules,
        answer(request, answer) {
          if (request.route !== GET || answer.status !== 200) return rules.answer(request, answer);
          const quietMs = clock.now() - (last.get(request.path) ?? Number.NEGATIVE_INFINITY);
          const isLimited = quietMs > 9000 && quietMs < 15_000;
          if (!isLimited) {
            last.set(request.path, clock.now());
            return rules.answer(request, answer);
          }
          hit();
          const limited = refusal(429, 'too_many_requests');
          return { ...limited, headers: { ...limited.headers, 'retry-after': '5' } };
        },
      };
    },
  },
  {
    id: 'every-fifth-polled-read-is-slow',
    takesMs: 70_000,
    breaks: 'GET /instances/{id} must be fast, cheap and accurate.',
    reddens: ['LAT-GET-001'],
    behave: (rules, hit) => {
      let count = 0;
      return {
        ...rules,
        answerDelayMs(request) {
          if (request.route !== GET || ++count % 5 > 0) return rules.answerDelayMs(request);
          hit();
          return 3000;
        },
      };
    },
  },
  {
    id: 'reads-wait-for-one-another',
    takesMs: 50_000,
    breaks: 'GET /instances/{id} must be fast, cheap and accurate.',
    reddens: ['LAT-GET-002'],
    behave: (rules, hit, clock) => {
      const count = countAtOnce(clock);
      return {
        ...rules,
        answerDelayMs(request) {
          const before = request.route === GET ? count() : 0;
          if (before > 0) hit();
          return rules.answerDelayMs(request) + before * 700;
        },
      };
    },
  },
  {
    id: 'reads-that-cross',
    breaks: 'A read of an instance shows that instance.',
    reddens: ['BOOT-IMAGE-001', 'INS-ID-001', 'INS-TIME-001', 'INS-TIME-002'],
    alsoIn: ['companion'],
    behave: (rules, hit, clock) => {
      const count = countAtOnce(clock);
      const last = new Map<string, { path: string; answer: WireAnswer }>();
      return {
        ...rules,
        answer(request, answer) {
          const usual = rules.answer(request, answer);
          if (request.route !== GET || usual.status !== 200) return usual;
          const { configuration_id: offer, region } = usual.json as Record<string, unknown>;
          const before = count() > 0 ? last.get(`${offer} ${region}`) : undefined;
          last.set(`${offer} ${region}`, { path: request.path, answer: usual });
          if (before === undefined || before.path === request.path) return usual;
          hit();
          return before.answer;
        },
      };
    },
  },
  {
    id: 'bad-key-reads-404',
    breaks: 'Missing or invalid credentials produce 401.',
    reddens: ['AUTH-LIVE-001'],
    behave: onAnswers([GET], (answer, { headers }) =>
      answer.status === 401 && headers['authorization']?.includes('no-such-key')
        ? refusal(404, 'not_found')
        : undefined,
    ),
  },
  {
    id: 'every-fifth-read-is-a-500',
    breaks: 'GET /instances/{instanceId} answers 200 with the instance.',
    reddens: ['ERR-5XX-001', 'INS-GET-001'],
    behave: (rules, hit) => {
      let count = 0;
      return {
        ...rules,
        answer(request, answer) {
          const isRead = request.route === GET && answer.status === 200;
          if (!isRead || ++count % 5 > 0) return rules.answer(request, answer);
          hit();
          return refusal(500, 'internal');
        },
      };
    },
  },
];

interface List {
  instances: Readonly<Record<string, unknown>>[];
}

const listOf = ({ json }: WireAnswer): List['instances'] => (json as List).instances;
const withList = (answer: WireAnswer, instances: List['instances']): WireAnswer => ({
  ...answer,
  json: { instances },
});
