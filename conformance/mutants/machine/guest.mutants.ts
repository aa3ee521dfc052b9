import { LIST_FILE } from '../../scenarios/machine/first-boot.ts';
import { onRule } from '../deviate.ts';
import { mapFiles } from '../instances/full-level.mutants.ts';
import type { Mutant } from '../mutant.ts';
import type { Hardware } from '../reference/guest.ts';
import { newHostKey } from '../reference/ssh-endpoint.ts';
import { letsIn } from './machine.mutants.ts';

/** Faults that are seen from inside the machine: its size, its first boot, its keys and what a start changes. */
export const guestMutants: readonly Mutant[] = [
  smaller('cores', 'vcpus'),
  smaller('memoryGb', 'memory_gb'),
  smaller('storageGb', 'storage_gb'),
  smaller('gpuCount', 'gpu_count'),
  {
    id: 'only-the-home-is-kept',
    breaks: 'The disk is preserved over a stop and a start.',
    reddens: ['INS-DISK-002'],
    behave: onRule('diskAfterStart', (disk) => ({
      ...disk,
      files: new Map([...disk.files].filter(([path]) => path.startsWith('/home/'))),
    })),
  },
  {
    id: 'host-key-is-new-after-the-start',
    breaks: 'The disk is preserved over a stop and a start.',
    reddens: ['SSH-HOST-001'],
    behave: onRule('diskAfterStart', (disk) => ({ ...disk, hostKey: newHostKey() })),
  },
  {
    id: 'rsa-keys-are-left-out',
    breaks: 'The orchestrator injects every key in ssh_keys.',
    reddens: ['SSH-KEYS-004'],
    behave: onRule('keysToInject', (keys) => {
      const others = keys.filter((key) => !key.startsWith('ssh-rsa '));
      return others.length < keys.length ? others : undefined;
    }),
  },
  {
    id: 'keys-outlive-their-instance',
    breaks: 'Temporary keys are removed at termination.',
    reddens: ['SSH-KEYS-005'],
    behave: letsIn(({ status }) => status === 'DESTROYED'),
  },
  {
    id: 'files-are-written-under-a-umask',
    breaks: 'permissions of a CloudInitFile.',
    reddens: ['BOOT-FILES-003'],
    behave: onRule('ownersAtFirstBoot', (owners) =>
      mapFiles(owners, (owner) =>
        owner.replace(/^\d+/, (mode) => (Number.parseInt(mode, 8) & ~0o022).toString(8)),
      ),
    ),
  },
  {
    id: 'files-end-after-four-kib',
    breaks: 'The content of a CloudInitFile is plain text.',
    reddens: ['BOOT-FILES-004'],
    behave: onRule('filesAtFirstBoot', (files) => mapFiles(files, (content) => content.slice(0, 4096))),
  },
  {
    id: 'commands-run-from-the-last-to-the-first',
    breaks: 'runcmd: shell commands on first boot.',
    reddens: ['BOOT-CMD-002'],
    behave: onRule('commandsAtFirstBoot', (commands) =>
      commands.length > 0 ? commands.toReversed() : undefined,
    ),
  },
  {
    id: 'commands-end-at-a-failure',
    breaks: 'A command after one that fails runs as well.',
    reddens: ['BOOT-CMD-003'],
    behave: onRule('commandsAtFirstBoot', (commands) =>
      commands.includes('false') ? commands.slice(0, commands.indexOf('false')) : undefined,
    ),
  },
  {
    id: 'commands-run-at-each-start',
    breaks: 'runcmd: shell commands on first boot.',
    reddens: ['BOOT-CMD-004'],
    behave: onRule('diskAfterStart', (disk) => {
      const list = disk.files.get(LIST_FILE);
      return list === undefined
        ? undefined
        : { ...disk, files: new Map(disk.files).set(LIST_FILE, list.repeat(2)) };
    }),
  },
];

/** A machine with half of what was sold. The offer has a GPU. */
function smaller(field: keyof Hardware, sold: string): Mutant {
  return {
    id: `half-of-${sold.replaceAll('_', '-')}`,
    breaks: `${sold} of a Configuration.`,
    reddens: ['INS-SIZE-001'],
    run: { offer: 'gpu-l4' },
    behave: onRule('hardware', (hardware) => ({
      ...hardware,
      [field]: Math.floor((hardware[field] ?? 0) / 2),
    })),
  };
}
