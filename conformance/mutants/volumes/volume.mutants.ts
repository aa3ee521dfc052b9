import { isShown, onAnswers, onRule, refusal, withFields } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';
import type { Volume } from '../reference/model.ts';

const CREATE = 'POST /volumes';
const DELETE = 'DELETE /volumes/{volumeId}';
const ATTACH = 'POST /volumes/{volumeId}/attach';
const DETACH = 'POST /volumes/{volumeId}/detach';

/** Faults in creating, reading and deleting volumes. */
export const volumeMutants: readonly Mutant[] = [
  {
    id: 'locations-without-a-name',
    breaks: 'The name of a VolumeLocation is required.',
    reddens: ['VOL-LOC-001'],
    behave: onRule('showLocation', ({ name: _, ...rest }) => rest),
  },
  {
    id: 'volume-create-is-200',
    breaks: 'POST /volumes answers 201.',
    reddens: ['VOL-CREATE-001'],
    behave: onAnswers([CREATE], (answer) => (answer.status === 201 ? { ...answer, status: 200 } : undefined)),
  },
  {
    id: 'volume-size-in-gib',
    breaks: 'Storage is in GB.',
    reddens: ['VOL-CREATE-002'],
    behave: onRule('showVolume', (shown, { sizeGb }) => ({ ...shown, size_gb: sizeGb / 1.073741824 })),
  },
  {
    id: 'nobody-is-null',
    breaks: 'attached_instance_ids is a list.',
    reddens: ['VOL-NULL-001'],
    behave: onRule('showVolume', (shown) =>
      shown['status'] === 'AVAILABLE' ? { ...shown, attached_instance_ids: null } : undefined,
    ),
  },
  {
    id: 'volumes-are-in-use',
    breaks: 'The status of a volume is one of seven words.',
    reddens: ['VOL-FIELDS-002'],
    behave: onAnswers([ATTACH], (answer) =>
      isShown(answer) ? withFields(answer, { status: 'in-use' }) : undefined,
    ),
  },
  {
    id: 'volume-region-is-404',
    breaks: '400: an invalid request.',
    reddens: ['VOL-INVALID-001'],
    behave: onAnswers([CREATE], (answer, { text }) =>
      answer.status === 400 && text.includes('berth-conf-nowhere') ? refusal(404, 'not_found') : undefined,
    ),
  },
  {
    id: 'volumes-of-a-type-fail',
    breaks: 'A volume that was accepted comes to be AVAILABLE.',
    reddens: ['VOL-READY-001'],
    alsoIn: ['companion'],
    behave: onRule('volumeStatus', (_usual, { type }) => (type === 'hdd' ? 'ERROR' : undefined)),
  },
  {
    id: 'any-volume-can-be-deleted',
    breaks: 'DELETE of an unknown volume is 404.',
    reddens: ['VOL-404-001'],
    behave: onAnswers([DELETE], ({ status }, { path }) =>
      status === 404 && !/\/v-\d+$/.test(path) ? { status: 204, headers: {} } : undefined,
    ),
  },
  {
    id: 'deleted-volumes-come-back',
    isSeenAtPaceOnly: true,
    breaks: 'A deleted volume is 404.',
    reddens: ['VOL-DELETE-003'],
    behave: (rules, hit) => {
      const reads = new Map<string, number>();
      return {
        ...rules,
        isVolumeGone(volume) {
          const count = volume.isDeleted ? (reads.get(volume.id) ?? 0) + 1 : 0;
          reads.set(volume.id, count);
          if (count !== 4) return rules.isVolumeGone(volume);
          hit();
          return false;
        },
      };
    },
  },
  {
    id: 'second-volume-delete-is-204',
    breaks: 'Deleting an already-deleted volume returns 404.',
    reddens: ['VOL-DELETE-004'],
    behave: onAnswers([DELETE], ({ status }, { path }) =>
      status === 404 && /\/v-\d+$/.test(path) ? { status: 204, headers: {} } : undefined,
    ),
  },
  {
    id: 'back-to-creating',
    breaks: 'A volume is CREATING before all else.',
    reddens: ['VOL-STATUS-001'],
    behave: onAnswers([DETACH], (answer) =>
      isShown(answer) ? withFields(answer, { status: 'CREATING' }) : undefined,
    ),
  },
  {
    id: 'volumes-of-stopped-instances-are-deleted',
    breaks: 'DELETE of an attached volume is 409.',
    reddens: ['VOL-STOP-001'],
    behave: onRule('mayDelete', (usual, volume) => (!usual && isHeldByStopped(volume) ? true : undefined)),
  },
  {
    id: 'a-stop-detaches',
    breaks: 'Only a detach detaches.',
    reddens: ['VOL-STOP-002'],
    behave: onRule('showVolume', (shown, volume) =>
      isHeldByStopped(volume) ? { ...shown, status: 'AVAILABLE', attached_instance_ids: [] } : undefined,
    ),
  },
  {
    id: 'a-start-forgets-the-volumes',
    breaks: 'ATTACHED: the machine has the volume.',
    reddens: ['VOL-STOP-003'],
    behave: onRule('diskAfterStart', (disk) => ({ ...disk, showsVolumes: false })),
  },
  {
    id: 'volumes-die-with-their-instance',
    breaks: 'A volume has a DELETE of its own.',
    reddens: ['VOL-OUTLIVE-001'],
    behave: onRule('endsAttachments', (_usual, { id }, volume) => {
      if (!volume.attachments.has(id)) return undefined;
      volume.isDeleted = true;
      return true;
    }),
  },
];

function isHeldByStopped({ attachments }: Volume): boolean {
  return [...attachments.values()].some(({ isOff }) => isOff);
}
