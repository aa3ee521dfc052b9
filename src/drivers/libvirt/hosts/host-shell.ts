import { accessSync, closeSync, constants, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Asking } from '../../kit/asking.ts';
import { problemOf, VirshError } from '../errors.ts';
import type { HostOptions } from '../options.ts';
import { anonymousFile, contentOf, runProgram } from '../run-program.ts';
import type { Limits } from './guard.ts';

export interface Output {
  status: number | null;
  stdout: string;
  stderr: string;
}

/** Runs what libvirt has no call for, such as the reset of a GPU. */
export interface HostShell {
  readonly name: string;
  /** Runs a script of Berth with `sh` on the host; it is sent on standard input. @throws {VirshError} `unreachable` */
  run(script: string, args: readonly string[], timeoutMs?: number, limits?: Limits): Promise<Output>;
}

const ANSWER_WITHIN_MS = 15_000;

/** The shell of the URI's host: this machine's, or over OpenSSH, as libvirt connects itself. */
export function openHostShell(
  options: Pick<HostOptions, 'name' | 'uri'>,
  login: Login = openLogin(options),
): HostShell {
  const { name } = options;
  return {
    name,
    async run(script, args, timeoutMs = ANSWER_WITHIN_MS, limits?) {
      await login.open();
      limits?.begin();
      const argv = onHost(login, ['sh', '-s', '--', ...args]);
      const what = `${argv[0]} for ${name}`;
      const ended = await runProgram(argv, {
        what,
        stdio: ['pipe', 'pipe', 'pipe'],
        input: script,
        timeoutMs,
        asking: login.asking,
        signal: limits?.signal,
      });
      const output = {
        ...ended,
        stdout: ended.stdout.toString('utf8'),
        stderr: ended.stderr.toString('utf8'),
      };
      if (login.ssh !== undefined && output.status === SSH_FAILED)
        throw new VirshError('unreachable', `ssh to ${name}: ${output.stderr.trim().slice(0, 300)}`);
      return output;
    },
  };
}

/** The connection of virsh and scripts to a host. */
export interface Login {
  /** The URI for virsh, valid after `open`. */
  readonly uri: string;
  /** The URI for the virsh on the host itself. */
  readonly ownUri: string;
  /** The arguments before a command line for the host's shell. Undefined if the host is this machine. */
  readonly ssh: readonly string[] | undefined;
  /** Limits of an examination by `berth doctor`. If absent, each call has its own. */
  readonly asking: Asking | undefined;
  /** Call it before each command. @throws {VirshError} */
  open(): Promise<void>;
  close(): Promise<void>;
}

/** How long a login is kept after the last call; longer than the interval between two listings. */
const KEPT_S = 60;
const LOGIN_WITHIN_MS = 15_000;
/** Exit status for OpenSSH's own failures. */
export const SSH_FAILED = 255;
/** A host that goes down is detected within about 15 seconds. */
const OPTIONS = [
  'BatchMode=yes',
  'ConnectTimeout=5',
  'ServerAliveInterval=5',
  'ServerAliveCountMax=2',
].flatMap((option) => ['-o', option]);

export function openLogin({ name, uri }: Pick<HostOptions, 'name' | 'uri'>, asking?: Asking): Login {
  const { protocol, searchParams } = new URL(uri);
  if (!protocol.endsWith('+ssh:'))
    return { uri, ownUri: uri, ssh: undefined, asking, open: async () => {}, close: async () => {} };
  const socket = searchParams.get('socket');
  const plain = ['ssh', ...OPTIONS, ...targetOf(uri)];
  // OpenSSH must not prompt for a password on the terminal.
  const quiet = searchParams.has('no_tty') ? uri : withParameter(uri, 'no_tty=1');
  // If the URI has a command, the operator manages the login.
  const kept = searchParams.has('command') ? undefined : keepLogin(name, plain, asking);
  return {
    asking,
    ownUri: socket === null ? 'qemu:///system' : `qemu+unix:///system?socket=${socket}`,
    get uri() {
      return kept?.program === undefined ? quiet : withParameter(quiet, `command=${kept.program}`);
    },
    ssh: [...plain.slice(0, 1), ...(kept?.sharing ?? []), ...plain.slice(1)],
    open: async () => kept?.open(),
    close: async () => kept?.close(),
  };
}

/** The command to run on the host. OpenSSH passes one line to its login shell. */
export const onHost = ({ ssh }: Login, command: readonly string[]): string[] =>
  ssh === undefined ? [...command] : [...ssh, command.map(quoted).join(' ')];

const quoted = (argument: string): string => `'${argument.replaceAll("'", `'\\''`)}'`;

function targetOf(uri: string): string[] {
  const { hostname, username, port, searchParams } = new URL(uri);
  const keyFile = searchParams.get('keyfile');
  return [
    ...(searchParams.get('no_verify') === '1' ? ['-o', 'StrictHostKeyChecking=no'] : []),
    ...(username === '' ? [] : ['-l', decodeURIComponent(username)]),
    ...(port === '' ? [] : ['-p', port]),
    ...(keyFile === null ? [] : ['-i', keyFile]),
    ...['--', hostname],
  ];
}

/**
 * Keeps one login for all calls: each virsh call is a process, and a login costs more than the call itself. An
 * OpenSSH process in the background holds the login and ends some time after the last call, even if Berth is killed.
 * Without it each call logs in by itself, which is only slower.
 */
function keepLogin(name: string, [ssh = '', ...args]: readonly string[], asking: Asking | undefined) {
  const folder = join(tmpdir(), `berth-ssh-${crypto.randomUUID().slice(0, 13)}`);
  const [socket, script] = [join(folder, 'way'), join(folder, 'ssh')];
  const sharing = ['-o', 'ControlMaster=no', '-o', `ControlPath=${socket}`];
  let program: string | undefined;
  let isMade = false;
  let isHopeless = false;
  let opening: Promise<void> | undefined;

  /** Makes the script that virsh runs in place of OpenSSH. */
  const make = (): void => {
    isMade = true;
    mkdirSync(folder, { mode: 0o700 });
    writeFileSync(script, `#!/bin/sh\nexec ssh ${[...sharing, ...OPTIONS].join(' ')} "$@"\n`, {
      mode: 0o700,
    });
    try {
      accessSync(script, constants.X_OK);
      program = script;
    } catch {
      // The folder for temporary files does not allow execution.
    }
  };
  const logIn = async (): Promise<void> => {
    if (!isMade) make();
    rmSync(socket, { force: true });
    // The background process would keep a pipe open.
    const said = anonymousFile('');
    try {
      const keeping = ['ControlMaster=yes', `ControlPath=${socket}`, `ControlPersist=${KEPT_S}`];
      const argv = [ssh, ...keeping.flatMap((option) => ['-o', option]), ...args, 'true'];
      const what = `ssh for ${name}`;
      const { status } = await runProgram(argv, {
        what,
        stdio: [said, said, said],
        timeoutMs: LOGIN_WITHIN_MS,
        asking,
      });
      const words = contentOf(said).toString('utf8').trim().slice(0, 300);
      if (status === SSH_FAILED)
        throw new VirshError(
          problemOf(words) === 'refused' ? 'refused' : 'unreachable',
          `ssh to ${name}: ${words}`,
        );
      isHopeless = !(await accepts(socket));
    } finally {
      closeSync(said);
    }
  };
  return {
    sharing,
    get program() {
      return program;
    },
    async open(): Promise<void> {
      if (isHopeless || (isMade && (await accepts(socket)))) return;
      opening ??= logIn().finally(() => {
        opening = undefined;
      });
      return opening;
    },
    async close(): Promise<void> {
      if (!isMade) return;
      const argv = [ssh, '-o', `ControlPath=${socket}`, '-O', 'exit', ...args];
      await runProgram(argv, {
        what: 'ssh -O exit',
        stdio: ['pipe', 'pipe', 'pipe'],
        timeoutMs: 5_000,
      }).catch(() => {});
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Whether a process listens on the socket: a killed OpenSSH leaves its socket file. */
async function accepts(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ path })
    .once('connect', () => resolve(true))
    .once('error', () => resolve(false));
  try {
    return await promise;
  } finally {
    socket.destroy();
  }
}

function withParameter(uri: string, parameter: string): string {
  return `${uri}${uri.includes('?') ? '&' : '?'}${parameter}`;
}
