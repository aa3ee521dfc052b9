import { randomBytes } from 'node:crypto';
import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type IncusApi, targetOf } from './api.ts';
import { IncusRefusal } from './errors.ts';

/** The file of its host that a pool is in, if Incus made one for it. */
interface PoolFile {
  /** Bytes that the file may still take from its file system. 0 if it is preallocated. */
  sparseBytes: number;
  /** Free bytes of its file system. */
  freeBytes: number;
}

/** A storage pool on one member. */
export interface Pool {
  driver: string;
  /** `Created` if Incus has set it up. */
  status: string;
  /** Bytes for machines and volumes, used or not. */
  bytes: number;
  /** Why nothing can be written there now, such as `read-only`. */
  problem?: string | undefined;
  /** The path of its file. */
  path?: string | undefined;
  /** Undefined if the pool has no file, or the file is not on this machine or cannot be read. */
  file?: PoolFile | undefined;
  config: Readonly<Record<string, string>>;
}

/** Storage drivers that keep all machines in one file system, which the kernel may make read-only. */
const IN_ONE_FILE_SYSTEM: ReadonlySet<string> = new Set(['btrfs', 'dir']);
const LOOP_FILE = /\/disks\/[^/]+\.img$/;
/** The volume of the trial write. It has no mark of Berth. */
const TRIAL = 'berth-trial-write';
/** An empty volume takes only metadata, for which a full pool may have room. Compression hardly shrinks random bytes. */
const TRIAL_BYTES = 768 * 1024;
const TRIAL_S = 5;

/**
 * Reads a pool, with the space below it. Incus does not report a pool that is full or read-only: it is found by making
 * and removing a volume.
 *
 * @throws as {@link IncusApi}
 */
export async function readPool(
  api: IncusApi,
  name: string,
  member: string | undefined,
  readFile = readPoolFile,
): Promise<Pool> {
  const { driver, status, config, bytes } = await api.pool(name, member);
  const source = config['source'] ?? '';
  const path = LOOP_FILE.test(source) ? source : undefined;
  const file = path !== undefined && api.client.isLocal ? await readFile(path) : undefined;
  const isTried = status === 'Created' && IN_ONE_FILE_SYSTEM.has(driver);
  const problem = isTried ? await tryWrite(api, name, member) : undefined;
  const short = file === undefined ? 0 : Math.max(0, file.sparseBytes - file.freeBytes);
  return {
    ...{ driver, status, config, path, file, problem },
    bytes: problem === undefined ? Math.max(0, bytes - short) : 0,
  };
}

async function readPoolFile(path: string): Promise<PoolFile | undefined> {
  try {
    const [{ size, blocks }, { bavail, bsize }] = await Promise.all([stat(path), statfs(dirname(path))]);
    return { sparseBytes: Math.max(0, size - blocks * 512), freeBytes: bavail * bsize };
  } catch {
    return undefined;
  }
}

async function tryWrite(
  { client }: IncusApi,
  pool: string,
  member: string | undefined,
): Promise<string | undefined> {
  const path = `/1.0/storage-pools/${pool}/volumes/custom`;
  const query = targetOf(member);
  const headers = { 'X-Incus-name': TRIAL, 'X-Incus-type': 'iso' };
  try {
    const { operation } = await client.send('POST', path, {
      query,
      content: { text: randomBytes(TRIAL_BYTES).toString('base64'), headers },
    });
    const { metadata } = await client.get(`/1.0/operations/${operation}/wait`, { timeout: String(TRIAL_S) });
    const problem = whyUnwritable((metadata as { err?: string }).err ?? '');
    if (problem !== undefined) return problem;
  } catch (error) {
    const problem = error instanceof IncusRefusal ? whyUnwritable(error.message) : undefined;
    if (problem !== undefined) return problem;
  }
  await client.send('DELETE', `${path}/${TRIAL}`, { query, trialVolume: true }).catch(() => undefined);
  return undefined;
}

function whyUnwritable(message: string): string | undefined {
  if (/read-only file system/i.test(message)) return 'read-only';
  if (/input\/output error/i.test(message)) return 'broken (input/output error)';
  return /no space left|disk quota exceeded/i.test(message) ? 'full' : undefined;
}
