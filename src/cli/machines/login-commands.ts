import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Fatal } from '../../ports/errors.ts';
import { printText } from '../../runtime/print.ts';
import { contextsFile } from '../context/contexts.ts';
import { isData, type OutputFlag, printData } from '../print-records.ts';
import { find, type Machine, type Machines } from './machine.ts';

/** `berth instances ssh`: runs OpenSSH's `ssh`, and ends as it ends. */
export async function logIn(
  machines: Machines,
  given: string,
  words: readonly string[],
  { identity }: { identity?: string },
): Promise<void> {
  const machine = await find(machines, given);
  const { id, status, endpoint } = machine;
  if (endpoint === null)
    throw new Fatal(`${id} is ${status} and has no SSH endpoint: see \`berth instances show ${id}\`.`);
  const knownHosts = join(dirname(contextsFile()), 'known_hosts');
  mkdirSync(dirname(knownHosts), { recursive: true, mode: 0o700 });
  process.exitCode = await run('ssh', [...sshOptions(machine, knownHosts, identity), ...words]);
}

/** An address serves one machine after another: the host key is kept under the id of the instance. */
function sshOptions(
  { id, endpoint }: Machine,
  knownHosts: string,
  identity: string | undefined,
): readonly string[] {
  const { user = '', host = '', port = 22 } = endpoint ?? {};
  return [
    ...['-o', `UserKnownHostsFile="${knownHosts}"`],
    ...['-o', `HostKeyAlias=${id}`],
    ...['-o', 'StrictHostKeyChecking=accept-new'],
    ...(identity === undefined ? [] : ['-i', identity]),
    ...['-l', user, '-p', String(port), '--', host],
  ];
}

async function run(program: string, args: readonly string[]): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const child = spawn(program, args, { stdio: 'inherit' });
  child.once('error', (cause: NodeJS.ErrnoException) =>
    reject(
      new Fatal(
        cause.code === 'ENOENT'
          ? 'There is no `ssh` in PATH: install the client of OpenSSH.'
          : `\`ssh\` cannot be run: ${cause.message}.`,
        { cause },
      ),
    ),
  );
  // A signal ends it as a shell reports it.
  child.once('close', (code) => resolve(code ?? 130));
  return promise;
}

/** `berth instances console`: prints what is stored of the guest's serial log. */
export async function printConsole(machines: Machines, given: string, flags: OutputFlag): Promise<void> {
  const { id, status, console } = await find(machines, given);
  if (console === null)
    throw new Fatal(
      `No console of ${id} is stored, and it is ${status}: Berth stores the last lines of a machine that fails, and shows them to operators.`,
    );
  if (isData(flags)) printData(flags, { id, console });
  else printText(`${console.replace(/\n?$/, '\n')}`);
}
