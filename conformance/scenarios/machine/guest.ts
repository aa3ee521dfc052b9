import type { SshRecord } from '../../transcript/records.ts';
import { partsOf, printedBy, script } from './printed.ts';

/** Files that must survive a stop and a start, in several parts of the disk. The one of the home is at a relative path. */
export const KEPT_FILES = {
  home: 'berth-conformance',
  etc: '/etc/berth-conformance',
  'var-lib': '/var/lib/berth-conformance-kept',
  root: '/berth-conformance',
} as const;

const cat = Object.fromEntries(Object.entries(KEPT_FILES).map(([name, path]) => [name, `cat ${path}`]));

export const LIST_DISKS = 'lsblk -dbnro NAME,TYPE,SIZE';

/** Prints the files. */
export const READ_FILES = script(cat);

/** Prints the size of the machine. A tool that the image does not have prints nothing. */
export const MEASURE = script({
  cores: 'nproc',
  disks: LIST_DISKS,
  filesystems: 'df -Pk',
  memory: 'cat /proc/meminfo',
  gpus: 'nvidia-smi --query-gpu=name,memory.total --format=csv,noheader',
});

/** Writes the files, as root where the user may, and prints them, and what they are on. */
export function writeFiles(word: string): string {
  const { home, ...others } = KEPT_FILES;
  const writes = Object.values(others).map((path) => `echo ${word} > ${path}`);
  return script({
    write: [`echo ${word} > ${home}`, ...writes, `sudo -n sh -c '${writes.join('; ')}'`, 'sync'].join('; '),
    ...cat,
    filesystems: 'df -Pk',
  });
}

/** The content of the files by their name, as a login printed them. A plain run has only the one of the home. */
export function keptFilesIn(login: SshRecord): ReadonlyMap<string, string> {
  const parts = partsOf(login);
  if (parts.has('home')) return parts;
  const [, written] = /^echo (\S+) > \S+ && sync$/.exec(login.command) ?? [];
  const home = login.exitCode === 0 && written !== undefined ? `${written}\n` : printedBy(login);
  return new Map(home === undefined ? [] : [['home', home]]);
}

/** The sizes of the disks in what `lsblk` printed, in bytes. */
export function diskSizes(printed = ''): number[] {
  return [...printed.matchAll(/^\S+ disk (\d+)$/gm)].map(([, bytes]) => Number(bytes));
}
