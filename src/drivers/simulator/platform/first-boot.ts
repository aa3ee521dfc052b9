import type { MachineSpec } from '../../../orchestrator/model/platform-driver.ts';
import { FileError, type Files, GUEST_USER } from '../guest/guest.ts';

const OUTPUT_LOG = '/var/log/cloud-init-output.log';
const rootFile = { mode: 0o644, user: 'root', group: 'root' };

export function writeFirstFiles({ hostname, image, sshKeys, cloudInit }: MachineSpec, files: Files): void {
  files.write('/etc/hostname', { ...rootFile, content: `${hostname}\n` });
  files.write('/etc/os-release', {
    ...rootFile,
    content: `PRETTY_NAME="${image}"\nVARIANT="Berth simulator"\n`,
  });
  files.write(`/home/${GUEST_USER}/.ssh/authorized_keys`, {
    content: sshKeys.map((line) => `${line}\n`).join(''),
    mode: 0o600,
    user: GUEST_USER,
    group: GUEST_USER,
  });
  for (const { path, content, permissions = '0644', owner = 'root' } of cloudInit?.write_files ?? []) {
    const [user = 'root', group = user] = owner.split(':');
    try {
      files.write(path, { content, mode: Number.parseInt(permissions, 8), user, group });
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      logFirstBoot(files, `cc_write_files: ${path}: ${error.message}\n`);
    }
  }
}

/** Appends to cloud-init's log, if the disk has room. */
export function logFirstBoot(files: Files, text: string): void {
  try {
    files.write(OUTPUT_LOG, { ...rootFile, content: (files.find(OUTPUT_LOG)?.content ?? '') + text });
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
  }
}
