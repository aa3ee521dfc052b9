import { isShown, onAnswers, onRule, refusal } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';

const TOKEN = 'POST /auth/token';

/** Faults in checking credentials. */
const keyMutants: readonly Mutant[] = [
  {
    id: 'missing-credential-is-403',
    breaks: 'A missing credential is 401.',
    reddens: ['AUTH-401-001', 'AUTH-LIVE-001', 'AUTH-LIVE-002', 'VOL-AUTH-001'],
    behave: onRule('answer', (usual, { headers }) =>
      usual.status === 401 && headers['authorization'] === undefined ? { ...usual, status: 403 } : undefined,
    ),
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
    reddens: ['AUTH-401-006'],
    behave: onRule('bearerOf', (_usual, authorization) =>
      /^(basic|token) /i.test(authorization ?? '') ? authorization?.split(' ')[1] : undefined,
    ),
  },
  {
    id: 'empty-bearer-is-let-in',
    breaks: 'A missing credential is 401.',
    reddens: ['AUTH-401-003'],
    behave: onRule('bearerOf', (_usual, authorization) =>
      authorization === 'Bearer' ? 'reference-key-one' : undefined,
    ),
  },
  {
    id: 'key-compared-by-its-beginning',
    breaks: 'An invalid credential is 401.',
    reddens: ['AUTH-401-004'],
    behave: onRule('bearerOf', (usual) => (usual === 'reference-key-on' ? 'reference-key-one' : undefined)),
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
    id: 'key-without-a-permission',
    breaks: 'The static key is sent on every request.',
    reddens: ['AUTH-KEY-001', 'INS-LIST-001'],
    behave: onAnswers(['GET /instances'], (answer, { query }) =>
      isShown(answer) && query.get('region') === 'ap-south' ? refusal(403, 'forbidden') : undefined,
    ),
  },
  {
    id: 'anybody-starts-a-live-instance',
    breaks: 'Every endpoint requires the bearer credential.',
    reddens: ['AUTH-LIVE-002'],
    behave: onRule('isAuthorized', (usual, { method, path }, credential) =>
      !usual && credential === 'none' && method === 'POST' && /i-\d{5}\/start$/.test(path) ? true : undefined,
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
    id: 'token-without-its-lifetime',
    breaks: 'expires_in must be included.',
    reddens: ['TOK-EXPIRES-001'],
    options: { token: 'api_key' },
    behave: onRule('showToken', ({ expires_in: _, ...rest }) => rest),
  },
  {
    id: 'token-for-a-week',
    breaks: 'Tokens are short-lived.',
    reddens: ['TOK-EXPIRES-002'],
    options: { token: 'api_key' },
    behave: onRule('tokenLifetimeS', () => 604_800),
  },
  {
    id: 'token-ends-before-its-time',
    breaks: 'expires_in is how long a token is good.',
    reddens: ['TOK-EXPIRES-003'],
    alsoIn: ['observe'],
    options: { token: 'api_key', staticKeys: false, tokenLifetimeS: 48 },
    behave: onRule('showToken', (shown) => ({ ...shown, expires_in: 60 })),
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
    id: 'token-for-any-password',
    breaks: 'Bad credentials are 401.',
    reddens: ['TOK-401-001'],
    options: { token: 'api_key' },
    behave: onRule('areCredentialsGood', (usual, { username }) =>
      !usual && username !== undefined ? true : undefined,
    ),
  },
  {
    id: 'login-gets-no-token',
    breaks: 'POST /auth/token takes a username and a password.',
    reddens: ['TOK-LOGIN-001'],
    options: { token: 'both' },
    signsInWith: 'both',
    behave: onRule('areCredentialsGood', (_usual, { username }) =>
      username === 'marketplace' ? false : undefined,
    ),
  },
];

/** Faults in accepting and issuing credentials. */
export const credentialMutants: readonly Mutant[] = [...keyMutants, ...tokenMutants];
