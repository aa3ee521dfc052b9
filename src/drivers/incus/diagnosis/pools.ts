import { broken, type Diagnosis, ok, warning } from '../../../ports/diagnosis.ts';
import { type IncusApi, SINGLE } from '../api.ts';
import { type Pool, readPool } from '../pools.ts';
import { failed, notSetUp } from './checks.ts';

/** Storage drivers that enforce a size. `dir` does so only on a file system with project quotas. */
const WITH_QUOTA = new Set(['btrfs', 'zfs', 'lvm', 'lvmcluster', 'ceph', 'linstor', 'truenas']);
const PREALLOCATE =
  'Preallocate the file, as "What Incus needs to have" in docs/how-to/incus.md says, or use a block device.';

/** Checks a storage pool on each member, also by making and removing an empty volume. */
export async function* diagnosePool(
  api: IncusApi,
  name: string,
  members: readonly string[],
): AsyncGenerator<Diagnosis> {
  for (const member of members) {
    const subject = `storage pool ${name}${member === SINGLE ? '' : ` on ${member}`}`;
    try {
      yield findingOf(subject, name, await readPool(api, name, member));
    } catch (error) {
      yield failed(subject, error, 'See `incus storage list`.');
    }
  }
}

function findingOf(subject: string, name: string, pool: Pool): Diagnosis {
  const { driver, status, problem, path } = pool;
  if (status !== 'Created') return notSetUp(subject, status, `incus storage show ${name}`);
  if (problem !== undefined)
    return broken(
      subject,
      `It is ${problem}: machines there cannot write, and new ones cannot be made.`,
      'Free space below the pool, then follow docs/runbook.md ("A storage pool is full or read-only").',
    );
  if (!WITH_QUOTA.has(driver))
    return warning(
      subject,
      `Its driver ${driver} may not enforce the disk size of a machine.`,
      'Use a pool with the driver zfs, btrfs, lvm or ceph.',
    );
  return path === undefined
    ? ok(subject, `It exists, with the driver ${driver}.`)
    : findingOfFile(subject, path, pool);
}

/** Compares the file that a pool is in with the file system that has it. */
function findingOfFile(subject: string, path: string, { file, config }: Pool): Diagnosis {
  const consequence = 'when its file system is full, the pool turns read-only, with all machines';
  if (file === undefined) {
    const isKept = config['btrfs.mount_options']?.split(',').includes('nodiscard');
    return isKept
      ? ok(subject, `It is in ${path}, a file that keeps the space that it has (nodiscard).`)
      : warning(
          subject,
          `It is in ${path}, a file that Berth cannot read. If it is sparse: ${consequence}.`,
          PREALLOCATE,
        );
  }
  const { sparseBytes, freeBytes } = file;
  if (sparseBytes === 0) return ok(subject, `It is in ${path}, a preallocated file.`);
  const finding = `Its file ${path} may still grow by ${gb(sparseBytes)} GB, and ${gb(freeBytes)} GB are free below it: ${consequence}.`;
  return sparseBytes > freeBytes
    ? broken(subject, finding, `Free space there, or make the pool smaller. ${PREALLOCATE}`)
    : warning(subject, finding, PREALLOCATE);
}

const gb = (bytes: number): number => Math.round((bytes / 2 ** 30) * 10) / 10;
