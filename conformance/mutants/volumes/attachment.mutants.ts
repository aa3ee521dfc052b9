import { onAnswers, onRule, refusal } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';

const ATTACH = 'POST /volumes/{volumeId}/attach';
const DETACH = 'POST /volumes/{volumeId}/detach';
const DELETE = 'DELETE /volumes/{volumeId}';
/** The path of a created volume. */
const OWN = /^\/volumes\/v-\d+/;

/** Faults in attaching and detaching volumes. */
export const attachmentMutants: readonly Mutant[] = [
  {
    id: 'attach-is-202',
    breaks: 'attach answers 200 with the volume.',
    reddens: ['VOL-ATTACH-001', 'VOL-ATTACH-002'],
    behave: onAnswers([ATTACH], (answer) => (answer.status === 200 ? { ...answer, status: 202 } : undefined)),
  },
  {
    id: 'attached-twice-is-409',
    breaks: 'Attaching to an already-attached instance is success.',
    reddens: ['VOL-ATTACH-002'],
    behave: (rules, hit) => {
      const attached = new Set<string>();
      return {
        ...rules,
        answer(request, answer) {
          const usual = rules.answer(request, answer);
          if (request.route === DETACH) attached.clear();
          if (request.route !== ATTACH || usual.status !== 200) return usual;
          const what = `${request.path} ${request.text}`;
          const isAgain = attached.has(what);
          attached.add(what);
          if (!isAgain) return usual;
          hit();
          return refusal(409, 'volume_attached');
        },
      };
    },
  },
  {
    id: 'attach-to-none',
    breaks: 'attach needs at least 1 instance.',
    reddens: ['VOL-ATTACH-003'],
    behave: onRule('validateAttach', (issues) => (issues.length > 0 ? [] : undefined)),
  },
  {
    id: 'attach-to-nobody',
    breaks: 'attach of an unknown instance is refused.',
    reddens: ['VOL-ATTACH-004'],
    behave: onRule('instancesToAttach', (_usual, _volume, asked) => {
      const known = asked.filter((id) => /^i-\d+$/.test(id));
      return known.length < asked.length ? known : undefined;
    }),
  },
  {
    id: 'left-off-after-the-attach',
    takesMs: 1_200_000,
    breaks: 'The stop-attach-start cycle is performed internally.',
    reddens: ['VOL-ATTACH-005'],
    options: { attach: 'cold' },
    behave: onRule('startMs', () => 86_400_000),
  },
  {
    id: 'no-attach-at-create',
    breaks: 'instance_ids of a volume’s create are attached.',
    reddens: ['VOL-ATTACH-006'],
    behave: onRule('instancesToAttach', (_usual, { isCreated }, asked) =>
      !isCreated && asked.length > 0 ? [] : undefined,
    ),
  },
  {
    id: 'second-attach-drops-the-first',
    breaks: 'An attach adds an instance; only a detach takes one away.',
    reddens: ['VOL-ATTACH-007'],
    behave: onRule('attachedInstanceIds', (ids) => (ids.length > 1 ? ids.slice(-1) : undefined)),
  },
  {
    id: 'detach-does-nothing',
    breaks: 'detach detaches from the instances that it names.',
    reddens: ['VOL-DETACH-001', 'VOL-DETACH-003'],
    behave: onRule('instancesToDetach', (_usual, _volume, asked) => (asked === undefined ? undefined : [])),
  },
  {
    id: 'detach-needs-a-body',
    breaks: 'When instance_ids are omitted, detach detaches from all instances.',
    reddens: ['VOL-DETACH-002'],
    behave: onRule('validateDetach', (_usual, body) =>
      (body as { instance_ids?: unknown }).instance_ids === undefined
        ? [{ path: 'instance_ids', message: 'is required' }]
        : undefined,
    ),
  },
  {
    id: 'detaches-from-all',
    breaks: 'detach detaches from the instances that it names.',
    reddens: ['VOL-DETACH-003'],
    behave: onRule('instancesToDetach', (usual, { attachments }) =>
      usual.length > 0 && attachments.size > usual.length ? [...attachments.keys()] : undefined,
    ),
  },
  {
    id: 'detach-of-none-is-of-all',
    breaks: 'Only where instance_ids are omitted detach detaches from all.',
    reddens: ['VOL-DETACH-005'],
    behave: (rules, hit) => ({
      ...rules,
      validateDetach: (body) => (isEmptyDetach(body) ? [] : rules.validateDetach(body)),
      instancesToDetach(volume, asked) {
        if (asked?.length !== 0) return rules.instancesToDetach(volume, asked);
        hit();
        return [...volume.attachments.keys()];
      },
    }),
  },
  {
    id: 'detached-before-it-is',
    breaks: 'A volume is not reported detached until the attachment record is gone.',
    reddens: ['VOL-DETACH-004'],
    options: { detachMs: 12_000 },
    behave: onRule('volumeStatus', (usual) => (usual === 'DETACHING' ? 'AVAILABLE' : undefined)),
  },
  {
    id: 'a-bad-key-deletes-volumes',
    breaks: 'Missing or invalid credentials produce 401.',
    reddens: ['VOL-AUTH-001'],
    behave: onRule('isAuthorized', (usual, { route, path }, credential) =>
      !usual && credential === 'unknown' && route === DELETE && OWN.test(path) ? true : undefined,
    ),
  },
  {
    id: 'attached-volumes-are-deleted',
    breaks: 'DELETE of an attached volume is 409.',
    reddens: ['VOL-DELETE-001', 'VOL-STOP-001'],
    behave: onRule('mayDelete', (usual) => (usual ? undefined : true)),
  },
  {
    id: 'lingering-records-block-the-delete',
    breaks: 'The orchestrator force-detaches before deleting instead of failing.',
    reddens: ['VOL-DELETE-005'],
    options: { detachMs: 12_000 },
    behave: onRule('mayDelete', (usual, { attachments }) =>
      usual && attachments.size > 0 ? false : undefined,
    ),
  },
  {
    id: 'the-gone-hold-volumes',
    breaks: 'An instance that is gone holds nothing.',
    reddens: ['VOL-RELEASE-001'],
    behave: onRule('endsAttachments', (usual, { id }, { attachments }) =>
      usual && attachments.has(id) ? false : undefined,
    ),
  },
];

function isEmptyDetach(body: unknown): boolean {
  const { instance_ids } = body as { instance_ids?: unknown };
  return Array.isArray(instance_ids) && instance_ids.length === 0;
}
