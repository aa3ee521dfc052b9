import type { CloudInitFile } from '../../../contract/cloud-init.ts';
import type { MachineSpec } from '../../../orchestrator/model/platform-driver.ts';
import { FileError, GUEST_USER } from '../guest/guest.ts';
import type { GuestFiles } from './disk-files.ts';

const OUTPUT_LOG = '/var/log/cloud-init-output.log';
const rootFile = { mode: 0o644, user: 'root', group: 'root' };

export function writeFirstFiles(spec: MachineSpec, files: GuestFiles): void {
  const { hostname, image, sshKeys, cloudInit } = spec;
  files.place('/etc/hostname', `${hostname}\n`, rootFile);
  files.place('/etc/os-release', `PRETTY_NAME="${image}"\nID=ubuntu\nVARIANT="Berth simulator"\n`, rootFile);
  const owned = { mode: 0o600, user: GUEST_USER, group: GUEST_USER };
  files.place(`/home/${GUEST_USER}/.ssh/authorized_keys`, sshKeys.map((line) => `${line}\n`).join(''), owned);
  files.place(OUTPUT_LOG, `Cloud-init v. 24.3 running 'modules:final'\n`, {
    ...rootFile,
    mode: 0o640,
    group: 'adm',
  });
  if (cloudInit?.package_update) logFirstBoot(files, 'Reading package lists...\n');
  if (cloudInit?.package_upgrade)
    logFirstBoot(files, '0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n');
  for (const name of cloudInit?.packages ?? []) logFirstBoot(files, `Setting up ${name} ...\n`);
  for (const file of cloudInit?.write_files ?? []) place(file, files);
}

function place(file: CloudInitFile, files: GuestFiles): void {
  const [user = 'root', group = user] = (file.owner ?? 'root:root').split(':');
  const mode = Number.parseInt(file.permissions ?? '0644', 8);
  try {
    files.place(file.path, file.content, { mode, user, group });
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    logFirstBoot(files, `cc_write_files: ${file.path}: ${error.message}\n`);
  }
}

export function logFirstBoot(files: GuestFiles, text: string): void {
  try {
    files.append(OUTPUT_LOG, text, rootFile);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
  }
}
