import { closeSync, fsyncSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { makeFolder } from '../resources/ledger-file.ts';
import { systemErrorText } from '../text/wording.ts';
import { config, type Diagnosis, note, ok } from './diagnosis.ts';

const LEDGER_SUBJECT = 'Ledger';
const LITTLE_BYTES = 50 * 1024 * 1024;
const TOO_LITTLE_BYTES = 1024 * 1024;

/** Checks whether the ledger can be written. Without it nothing is bought. */
export function stateFolder(folder: string): Diagnosis {
  try {
    makeFolder(folder);
    tryWriting(join(folder, `.doctor-${process.pid}`));
    const { bavail, bsize } = statfsSync(folder);
    const freeBytes = bavail * bsize;
    const free = `${Math.floor(freeBytes / 1024 / 1024)} MiB`;
    const elsewhere = 'make room, or name another folder with --state-dir';
    if (freeBytes < TOO_LITTLE_BYTES)
      return config(LEDGER_SUBJECT, `the disk of ${folder} is full`, elsewhere);
    if (freeBytes < LITTLE_BYTES) return note(LEDGER_SUBJECT, `${folder} has only ${free} left`, elsewhere);
    return ok(LEDGER_SUBJECT, `${folder} can be written`);
  } catch (error) {
    return config(
      LEDGER_SUBJECT,
      `the ledger cannot be kept in ${folder} (${systemErrorText(error)})`,
      'name a folder that can be written with --state-dir',
    );
  }
}

function tryWriting(path: string): void {
  try {
    const file = openSync(path, 'w', 0o600);
    try {
      writeSync(file, 'x'.repeat(4096));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  } finally {
    rmSync(path, { force: true });
  }
}

const SSH_SUBJECT = 'SSH';
const TIMEOUT_MS = 10_000;

/** Checks whether this machine can reach SSH servers. Unknown without an address to try. */
export async function sshEgress(address: { host: string; port: number } | undefined): Promise<Diagnosis> {
  if (address === undefined)
    return note(
      SSH_SUBJECT,
      'whether this machine reaches SSH on the instances cannot be known before there is one',
      'to try it now, name an address where SSH listens with --ssh-host HOST:PORT',
    );
  const { host, port } = address;
  const result = await tryConnecting(host, port);
  if (result === 'connected') return ok(SSH_SUBJECT, `${host}:${port} takes connections`);
  return config(
    SSH_SUBJECT,
    `${host}:${port} takes no connection from this machine (${result})`,
    'let the firewall of this network pass TCP out to the SSH ports of the instances',
  );
}

function tryConnecting(host: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const finish = (result: string): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => finish(`no answer within ${TIMEOUT_MS / 1000} s`), TIMEOUT_MS);
    socket.once('connect', () => finish('connected'));
    socket.on('error', (error: NodeJS.ErrnoException) => finish(error.code ?? error.message));
  });
}
