import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, notApplicable, notTested } from '../../evidence/finding.ts';
import { diskSizes, KEPT_FILES, keptFilesIn } from '../../scenarios/machine/guest.ts';
import { partsOf } from '../../scenarios/machine/printed.ts';
import { isObject, type JsonObject, numberField, stringField } from '../../text/json.ts';
import { shortJson } from '../../text/wording.ts';
import type { Check } from '../check.ts';

/** What is seen from inside the machine. */
export const guestChecks: readonly Check[] = [
  {
    id: 'INS-DISK-001',
    level: 'lifecycle',
    scenarios: ['start'],
    judge: (evidence) => judgeKept(evidence, ['home']),
  },
  {
    id: 'INS-DISK-002',
    level: 'lifecycle',
    scenarios: ['start'],
    judge: (evidence) => judgeKept(evidence, ['etc', 'var-lib', 'root']),
  },
  { id: 'INS-SIZE-001', level: 'lifecycle', scenarios: ['online'], judge: judgeSize },
];

/** Files that were written before a stop must be there after the start. */
function judgeKept(evidence: Evidence, names: readonly (keyof typeof KEPT_FILES)[]): Finding {
  const [written] = evidence.loginsAt('online/write-file');
  const [login] = evidence.loginsAt('start/read-file');
  if (written?.rung !== 'done' || login?.rung !== 'done')
    return notTested('no login succeeded on both sides of a stop');
  const before = keptFilesIn(written);
  const filesystems = partsOf(written).get('filesystems');
  const kept = names.filter((name) => before.get(name) && isOnDisk(KEPT_FILES[name], filesystems));
  const paths = names.map((name) => KEPT_FILES[name]).join(', ');
  if (kept.length === 0)
    return notApplicable('a user who may write there', `nothing could be written to a disk at ${paths}`);
  const after = keptFilesIn(login);
  return judgeEach(
    kept,
    `files (${kept.map((name) => KEPT_FILES[name]).join(', ')})`,
    (name) =>
      after.get(name) === before.get(name)
        ? undefined
        : {
            expected: `the file ${KEPT_FILES[name]}, which was written before the stop`,
            actual: after.get(name) ? `it holds ${shortJson(after.get(name), 100)}` : 'it is not there',
          },
    () => login,
  );
}

/** Whether a path is on a disk. Some images keep /etc or the root in memory, as a file system of its own. */
function isOnDisk(path: string, filesystems = ''): boolean {
  const mounts = [...filesystems.matchAll(/^(\S+) .* (\/\S*)$/gm)].map(([, source = '', at = '']) => ({
    source,
    at,
  }));
  const { source, at } = mounts
    .filter((mount) => path.startsWith(mount.at))
    .reduce((longest, mount) => (mount.at.length > longest.at.length ? mount : longest), {
      source: '',
      at: '/',
    });
  return at === '/' || source.startsWith('/dev/');
}

/** A kernel, a file system and GB for GiB may take the rest of what was sold. */
const LEAST = 0.9;
const GB = 1e9;
/** A line of nvidia-smi. Its errors are other lines. */
const GPU = /, (?:\d+ MiB|\[N\/A\])$/gm;

function judgeSize(evidence: Evidence): Finding {
  const [login] = evidence.loginsAt('online/measure');
  const offer = login && offerOf(evidence, login.instanceId);
  if (offer === undefined) return notTested('no read of the offers shows what was sold');
  if (offer['instance_type'] === 'CLUSTER')
    return notApplicable('a single machine', 'the offer is a CLUSTER, of which a login shows one machine');
  const sizes = Object.entries(sizesOf(partsOf(login ?? {}))).filter(
    ([field, found]) => numberField(offer, field) && Number.isFinite(found),
  );
  if (sizes.length === 0)
    return notApplicable('tools that show the size of a machine', 'the machine has none');
  return judgeEach(
    sizes,
    `sizes of ${stringField(offer, 'id')} (${sizes.map(([field]) => field).join(', ')})`,
    ([field, found]) => {
      const sold = numberField(offer, field) ?? 0;
      return found >= sold * LEAST
        ? undefined
        : { expected: `${field} ${sold}, as in the offer`, actual: `the machine has ${found.toFixed(1)}` };
    },
    () => login,
  );
}

function offerOf({ instances, objects }: Evidence, instanceId: string): JsonObject | undefined {
  const timeline = instances.find(({ id }) => id === instanceId);
  const shown = timeline?.observations.find(({ instance }) => instance !== undefined)?.instance;
  const id = stringField(shown, 'configuration_id');
  const offer = objects.configurations.find(({ value }) => stringField(value, 'id') === id)?.value;
  return isObject(offer) ? offer : undefined;
}

/** What the machine has, by the field of the offer. NaN: it has no tool that shows it. */
function sizesOf(parts: ReadonlyMap<string, string>): Record<string, number> {
  const gpus = parts.get('gpus')?.trim() ?? '';
  const [, kib] = /^MemTotal: +(\d+) kB/m.exec(parts.get('memory') ?? '') ?? [];
  return {
    vcpus: Number(/^\d+$/m.exec(parts.get('cores') ?? '')?.[0]),
    memory_gb: (Number(kib) * 1024) / GB,
    storage_gb: storageGb(parts),
    gpu_count: gpus === '' ? Number.NaN : (gpus.match(GPU)?.length ?? 0),
  };
}

/** The file systems on disks; or, of a machine with several, the disks, since the others may not be mounted. */
function storageGb(parts: ReadonlyMap<string, string>): number {
  const lines = [...(parts.get('filesystems') ?? '').matchAll(/^(\S+) +(\d+) +\d+ +-?\d+ +\S+ +(\/.*)$/gm)];
  const mounted = lines.filter(([, source, , path]) => source?.startsWith('/dev/') || path === '/');
  if (mounted.length === 0) return Number.NaN;
  const bySource = new Map(mounted.map(([, source, kib]) => [source, Number(kib) * 1024]));
  const disks = diskSizes(parts.get('disks')).filter((bytes) => bytes > GB);
  return Math.max(sumGb([...bySource.values()]), disks.length > 1 ? sumGb(disks) : 0);
}

const sumGb = (bytes: readonly number[]): number => bytes.reduce((sum, one) => sum + one, 0) / GB;
