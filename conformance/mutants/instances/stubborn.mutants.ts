import { isShown, onAnswers, onRule, refusal } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';

const READ = 'GET /instances/{instanceId}';
const LIST = 'GET /instances';
const CREATE = 'POST /instances';

const isOfRun = (path: string): boolean => /i-\d{5}/.test(path);

const hasOffer = (body: unknown): boolean => {
  const { configuration_id, region, ssh_keys } = body as Record<string, unknown>;
  return (
    typeof configuration_id === 'string' &&
    typeof region === 'string' &&
    (ssh_keys === undefined || Array.isArray(ssh_keys))
  );
};

/** Wrong answers that stay wrong, however long a run waits. */
export const stubbornMutants: readonly Mutant[] = [
  {
    id: 'gone-reads-410',
    breaks: 'A destroyed instance reads 404.',
    reddens: ['DEL-GONE-001'],
    behave: onAnswers([READ], (answer, { path }) =>
      answer.status === 404 && isOfRun(path) ? refusal(410, 'gone') : undefined,
    ),
  },
  {
    id: 'gone-reads-200-with-an-error',
    breaks: 'A destroyed instance reads 404.',
    reddens: ['DEL-GONE-001', 'INS-FIELD-001', 'INS-FIELD-002', 'WIRE-STATUS-001'],
    behave: onAnswers([READ], (answer, { path }) =>
      answer.status === 404 && isOfRun(path) ? { ...answer, status: 200 } : undefined,
    ),
  },
  {
    id: 'gone-closes-the-connection',
    breaks: 'A destroyed instance reads 404.',
    reddens: ['DEL-GONE-001', 'WIRE-REACH-001'],
    behave: onRule('isSent', (_usual, { route, path }, { status }) =>
      route === READ && status === 404 && isOfRun(path) ? false : undefined,
    ),
  },
  {
    id: 'destroyed-for-ever',
    breaks: 'A destroyed instance reads 404.',
    reddens: ['DEL-GONE-001'],
    behave: onRule('isGone', (usual) => (usual ? false : undefined)),
  },
  {
    id: 'list-is-not-wrapped',
    breaks: 'GET /instances answers { instances: […] }.',
    reddens: ['INS-LIST-001', 'INS-LIST-003', 'INS-LIST-005', 'WIRE-BODY-001'],
    behave: onAnswers([LIST], (answer) =>
      isShown(answer) ? { ...answer, json: (answer.json as { instances: unknown }).instances } : undefined,
    ),
  },
  {
    id: 'bad-creates-crash',
    breaks: 'A create that is refused is 400.',
    reddens: [
      'ERR-400-001',
      'ERR-400-002',
      'NEG-CLOUD-001',
      'NEG-IMAGE-001',
      'NEG-JSON-001',
      'NEG-KEYS-001',
      'NEG-KEYS-002',
      'NEG-OFFER-001',
      'NEG-REGION-001',
      'NEG-REQUIRED-001',
      'NEG-TYPE-001',
      'NEG-TYPE-002',
    ],
    behave: onAnswers([CREATE], (answer) => (answer.status === 400 ? refusal(500, 'internal') : undefined)),
  },
  {
    id: 'bad-creates-close-the-connection',
    breaks: 'A create that is refused is 400.',
    reddens: [
      'NEG-CLOUD-001',
      'NEG-IMAGE-001',
      'NEG-JSON-001',
      'NEG-KEYS-001',
      'NEG-KEYS-002',
      'NEG-OFFER-001',
      'NEG-REGION-001',
      'NEG-REQUIRED-001',
      'NEG-TYPE-001',
      'NEG-TYPE-002',
      'WIRE-REACH-001',
    ],
    behave: onRule('isSent', (_usual, { route }, { status }) =>
      route === CREATE && status === 400 ? false : undefined,
    ),
  },
  {
    id: 'accepts-bad-creates',
    breaks: 'A create with a defect is 400.',
    reddens: ['NEG-KEYS-001'],
    behave: onRule('validateCreate', (usual, body) => (usual.length > 0 && hasOffer(body) ? [] : undefined)),
  },
  {
    id: 'cut-off-bodies-crash',
    breaks: 'JSON that is cut off is 400.',
    reddens: ['ERR-400-001', 'NEG-JSON-001', 'VOL-INVALID-001'],
    behave: onAnswers([CREATE, 'POST /volumes'], (answer, { text }) =>
      answer.status === 400 && text.startsWith('{') && !text.endsWith('}')
        ? refusal(500, 'internal')
        : undefined,
    ),
  },
];
