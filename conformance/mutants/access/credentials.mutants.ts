import { isShown, onAnswers, onRule, refusal, withFields } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';

const TOKEN = 'POST /auth/token';

/** Faults in checking credentials. */
const keyMutants: readonly Mutant[] = [
  {
    id: 'public-catalogue',
    breaks: 'Every endpoint requires the bearer credential.',
    reddens: ['AUTH-401-001', 'AUTH-401-002', 'AUTH-401-003', 'AUTH-401-004'],
    behave: onRule('needsCredential', (_usual, { route }) =>
      route === 'GET /configurations' ? false : undefined,
    ),
  },
  {
    id: 'missing-credential-is-403',
    breaks: 'A missing credential is 401.',
    reddens: ['AUTH-401-001', 'AUTH-LIVE-001', 'AUTH-LIVE-002', 'VOL-AUTH-001'],
    behave: onRule('answer', (usual, { headers }) =>
      usual.status === 401 && headers['authorization'] === undefined ? { ...usual, status: 403 } : undefined,
    ),
  },
  {
    id: 'unknown-key-is-403',
    breaks: 'An invalid credential is 401.',
    reddens: ['AUTH-401-002', 'AUTH-LIVE-001', 'AUTH-LIVE-002', 'VOL-AUTH-001'],
    behave: onRule('answer', (usual, { headers }) =>
      usual.status === 401 && /^Bearer berth-/.test(headers['authorization'] ?? '')
        ? refusal(403, 'forbidden')
        : undefined,
    ),
  },
  {
    id: 'every-bad-credential-is-403',
    breaks: 'Missing or invalid credentials produce 401.',
    reddens: [
      'AUTH-401-001',
      'AUTH-401-002',
      'AUTH-401-003',
      'AUTH-401-004',
      'AUTH-LIVE-001',
      'AUTH-LIVE-002',
      'VOL-AUTH-001',
    ],
    behave: onRule('answer', (usual) => (usual.status === 401 ? refusal(403, 'forbidden') : undefined)),
  },
  {
    id: 'any-key-may-list-locations',
    breaks: 'An invalid credential is 401.',
    reddens: ['AUTH-401-002', 'AUTH-401-004'],
    behave: onRule('isAuthorized', (_usual, { route }, credential) =>
      route === 'GET /volumes/locations' && credential === 'unknown' ? true : undefined,
    ),
  },
  {
    id: 'any-scheme',
    breaks: 'The credential is sent as Authorization: Bearer.',
    reddens: ['AUTH-401-003'],
    behave: onRule('bearerOf', (_usual, authorization) =>
      /^(basic|token) /i.test(authorization ?? '') ? authorization?.split(' ')[1] : undefined,
    ),
  },
  {
    id: 'key-without-a-scheme',
    breaks: 'The credential is sent as Authorization: Bearer.',
    reddens: ['AUTH-401-003'],
    behave: onRule('bearerOf', (_usual, authorization) =>
      authorization === 'reference-key-one' ? authorization : undefined,
    ),
  },
  {
    id: 'key-in-any-letter-case',
    breaks: 'An invalid credential is 401.',
    reddens: ['AUTH-401-004'],
    behave: onRule('bearerOf', (usual) => (usual === 'REFERENCE-KEY-ONE' ? usual.toLowerCase() : undefined)),
  },
  {
    id: 'key-compared-by-its-beginning',
    breaks: 'An invalid credential is 401.',
    reddens: ['AUTH-401-004'],
    behave: onRule('bearerOf', (usual) => (usual === 'reference-key-on' ? 'reference-key-one' : undefined)),
  },
  {
    id: 'key-cut-to-its-column',
    breaks: 'An invalid credential is 401.',
    reddens: ['AUTH-401-004'],
    behave: onRule('bearerOf', (usual) =>
      usual?.startsWith('reference-key-one') && usual.length > 17 ? usual.slice(0, 17) : undefined,
    ),
  },
  {
    id: 'gateway-answers-401',
    breaks: 'Every 401 body is an Error.',
    reddens: ['AUTH-401-005', 'ERR-ENVELOPE-001'],
    behave: onRule('answer', (usual) =>
      usual.status === 401 ? { ...usual, json: { message: 'Unauthorized' } } : undefined,
    ),
  },
  {
    id: 'bans-an-address-after-bad-credentials',
    breaks: 'An invalid credential is 401.',
    reddens: ['AUTH-401-003', 'AUTH-401-004'],
    behave: (rules, hit) => {
      let count = 0;
      return {
        ...rules,
        answer(request, answer) {
          if (answer.status === 401) count++;
          if (count <= 46) return rules.answer(request, answer);
          hit();
          return refusal(403, 'banned');
        },
      };
    },
  },
  {
    id: 'key-without-a-permission',
    breaks: 'The static key is sent on every request.',
    reddens: ['AUTH-KEY-001', 'INS-LIST-001'],
    behave: onAnswers(['GET /instances'], (answer, { query }) =>
      isShown(answer) && query.get('region') === 'ap-south' ? refusal(403, 'forbidden') : undefined,
    ),
  },
];

const tokenMutants: readonly Mutant[] = [
  {
    id: 'token-answers-201',
    breaks: 'POST /auth/token answers 200.',
    reddens: ['TOK-200-001'],
    options: { token: 'api_key' },
    behave: onAnswers([TOKEN], (answer) => (answer.status === 200 ? { ...answer, status: 201 } : undefined)),
  },
  {
    id: 'token-under-another-name',
    breaks: 'access_token is required.',
    reddens: ['TOK-FIELD-001'],
    options: { token: 'api_key' },
    behave: onRule('showToken', ({ access_token: token, ...rest }) => ({ ...rest, token })),
  },
  {
    id: 'token-type-is-a-number',
    breaks: 'token_type is a string.',
    reddens: ['TOK-FIELD-001'],
    options: { token: 'api_key' },
    behave: onRule('showToken', (shown) => ({ ...shown, token_type: 1 })),
  },
  {
    id: 'token-without-its-lifetime',
    breaks: 'expires_in must be included.',
    reddens: ['TOK-EXPIRES-001'],
    options: { token: 'api_key' },
    behave: onRule('showToken', ({ expires_in: _, ...rest }) => rest),
  },
  {
    id: 'lifetime-as-text',
    breaks: 'expires_in is integer seconds.',
    reddens: ['TOK-EXPIRES-001'],
    options: { token: 'api_key' },
    behave: onAnswers([TOKEN], (answer) =>
      isShown(answer) ? withFields(answer, { expires_in: '3600' }) : undefined,
    ),
  },
  {
    id: 'token-that-no-route-knows',
    breaks: 'The access token is sent as a bearer credential.',
    reddens: ['TOK-WORKS-001'],
    options: { token: 'api_key' },
    behave: onRule('isAuthorized', (_usual, _request, credential) =>
      credential === 'token' ? false : undefined,
    ),
  },
  {
    id: 'token-for-the-catalogue-only',
    breaks: 'The access token is sent as a bearer credential.',
    reddens: ['TOK-WORKS-001'],
    options: { token: 'api_key' },
    behave: onRule('isAuthorized', (_usual, { route }, credential) =>
      credential === 'token' && route !== 'GET /configurations' ? false : undefined,
    ),
  },
  {
    id: 'token-for-an-empty-body',
    breaks: 'Bad credentials are 401.',
    reddens: ['TOK-401-001'],
    options: { token: 'api_key' },
    behave: (rules, hit) => ({
      ...rules,
      validateToken(body) {
        const isEmpty = Object.keys(body ?? {}).length === 0;
        if (isEmpty) hit();
        return isEmpty ? [] : rules.validateToken(body);
      },
      areCredentialsGood: (body) => Object.keys(body).length === 0 || rules.areCredentialsGood(body),
    }),
  },
  {
    id: 'token-for-any-password',
    breaks: 'Bad credentials are 401.',
    reddens: ['TOK-401-001'],
    options: { token: 'api_key' },
    behave: onRule('areCredentialsGood', (usual, { username }) =>
      !usual && username !== undefined ? true : undefined,
    ),
  },
  {
    id: 'login-of-nobody-is-403',
    breaks: 'Bad credentials are 401.',
    reddens: ['TOK-401-001'],
    options: { token: 'password', staticKeys: false },
    signsInWith: 'login',
    behave: onAnswers([TOKEN], (answer) => (answer.status === 401 ? { ...answer, status: 403 } : undefined)),
  },
  {
    id: 'login-gets-no-token',
    breaks: 'POST /auth/token takes a username and a password.',
    reddens: ['TOK-LOGIN-001'],
    options: { token: 'api_key' },
    signsInWith: 'both',
    behave: onRule('areCredentialsGood', (_usual, { username }) =>
      username === 'marketplace' ? false : undefined,
    ),
  },
  {
    id: 'token-for-anybody',
    breaks: 'Bad credentials are 401.',
    reddens: ['TOK-401-001'],
    options: { token: 'api_key' },
    behave: onRule('areCredentialsGood', (usual) => (usual ? undefined : true)),
  },
  {
    id: 'bad-credentials-are-400',
    breaks: 'Bad credentials are 401.',
    reddens: ['TOK-401-001'],
    options: { token: 'api_key' },
    behave: onAnswers([TOKEN], (answer) =>
      answer.status === 401 ? refusal(400, 'invalid_request') : undefined,
    ),
  },
];

/** Faults in accepting and issuing credentials. */
export const credentialMutants: readonly Mutant[] = [...keyMutants, ...tokenMutants];
