import { VirshError } from '../errors.ts';
import type { HostOptions } from '../options.ts';
import { runProgram } from '../run-program.ts';
import type { Limits } from './guard.ts';
import { type Login, onHost, openLogin, SSH_FAILED } from './ssh-login.ts';

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
