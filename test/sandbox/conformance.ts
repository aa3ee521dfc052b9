import { loadRequirements } from '../../conformance/contract/requirements.ts';
import type { Clock } from '../../conformance/http/clock.ts';
import type { Transport } from '../../conformance/http/transport.ts';
import {
  CHECKS,
  type Judged,
  judge,
  run,
  type SshClient,
  scenariosFor,
  ssh2Client,
} from '../../conformance/index.ts';
import { Draws } from '../../conformance/transcript/draws.ts';
import type { FailureKind, Level } from '../../conformance/transcript/records.ts';
import { modelProbe } from '../../src/sandbox/machines.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';

const settings = {
  pollIntervalMs: 10_000,
  readyTimeoutMs: 600_000,
  maxCostUsd: 1_000,
  maxMinutes: 600,
  allowPrivate: true,
};
/** A longer timer is one that waits for the end of the run: the clock does not advance for it. */
const LONGEST_PAUSE_MS = 10 * 60_000;
/** How long a request is on its way, or a login takes. */
const WAY_MS = 20;
const rungs = {
  connect: 'connect',
  banner: 'handshake',
  handshake: 'handshake',
  host_key: 'handshake',
  auth: 'authenticate',
} as const;

/** Runs the conformance suite against a provider of a sandbox, in process and in its time. The proof by SSH is the model's. */
export async function judgeProvider(
  sandbox: Sandbox,
  name: string,
  { level = 'lifecycle' as Level, only }: { level?: Level; only?: readonly string[] } = {},
): Promise<Judged[]> {
  const [first, second] = [sandbox.provider(name), await sandbox.account()];
  const records = await run(
    {
      apiKey: first.apiKey,
      baseUrl: first.baseUrl,
      level,
      only,
      settings,
    },
    {
      runId: `trial-${second.name}`,
      draws: new Draws(second.name),
      transport: transportOf(sandbox),
      clock: clockOf(sandbox),
      ssh: sshOf(sandbox, name),
      ledgerFile: { append: () => undefined },
    },
    scenariosFor(level, only && CHECKS.filter(({ id }) => only.includes(id))),
  );
  return judge(records, loadRequirements().rows, CHECKS);
}

/** The sorted ids of the requirements that failed or warned, with the reason. */
export function reddened(judged: readonly Judged[]): string[] {
  return judged
    .filter(({ verdict }) => verdict === 'fail' || verdict === 'warn')
    .map(({ requirement }) => requirement.id)
    .toSorted();
}

function clockOf({ clock }: Sandbox): Clock {
  const begunAt = clock.now();
  return {
    now: () => clock.now() - begunAt,
    wall: () => clock.now(),
    sleep(ms, signal) {
      const slept = new Promise<void>((resolve, reject) => {
        signal?.throwIfAborted();
        clock.setTimer(ms, resolve);
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      });
      return ms > LONGEST_PAUSE_MS ? slept : clock.during(slept);
    },
  };
}

/** Time passes on the way of each request, as on a network. */
function pass(clock: Sandbox['clock'], ms: number): Promise<void> {
  return clock.during(new Promise((resolve) => void clock.setTimer(ms, resolve)));
}

function transportOf({ clock, fetch }: Sandbox): Transport {
  return {
    async send({ url, ...request }, { timeoutMs, signal }) {
      const sentAt = clock.now();
      const late = clock.timeout(timeoutMs);
      const given = signal === undefined ? late : AbortSignal.any([late, signal]);
      try {
        await pass(clock, WAY_MS);
        const answer = await fetch(url, { ...request, signal: given });
        const firstByteMs = clock.now() - sentAt;
        const body = await answer.text();
        const headers = Object.fromEntries(answer.headers);
        return { status: answer.status, headers, body, firstByteMs, totalMs: clock.now() - sentAt };
      } catch (error) {
        const failure: FailureKind = late.aborted ? 'timeout' : signal?.aborted ? 'interrupted' : 'reset';
        return { failure, message: String(error), totalMs: clock.now() - sentAt };
      }
    },
    roundTripMs: async () => 0,
    close: async () => undefined,
  };
}

/** Logs in by the model's word, with a disk for each machine that knows `echo … > FILE && sync`, and `cat FILE` between markers. */
function sshOf(sandbox: Sandbox, name: string): SshClient {
  const { newKeyPair } = ssh2Client();
  const publicKeys = new Map<string, string>();
  const files = new Map<string, string>();
  const { clock } = sandbox;
  return {
    newKeyPair(comment, type) {
      const pair = newKeyPair(comment, type);
      publicKeys.set(pair.privateKey, pair.publicKey);
      return pair;
    },
    async login({ host, port, username, privateKey, command = 'true' }) {
      await pass(clock, WAY_MS);
      const probe = modelProbe(sandbox.provider(name).platform, clock);
      const keys = [publicKeys.get(privateKey) ?? ''];
      const found = await probe.probe({ host, port, username }, keys, undefined, 10_000);
      if (!found.ok) return { rung: rungs[found.step], message: found.detail, totalMs: WAY_MS };
      const [, text, written] = /^echo (\S+) > (\S+) && sync$/.exec(command) ?? [];
      if (text !== undefined) files.set(`${host}:${port}/${written}`, text);
      const [, begin = '', file = '', end = ''] =
        /^echo (\S+) && cat (\S+) && echo (\S+)$/.exec(command) ?? [];
      const stdout = `${begin}\n${files.get(`${host}:${port}/${file}`) ?? ''}${end}\n`;
      return { rung: 'done', hostKey: found.hostKeyFingerprint, exitCode: 0, stdout, totalMs: WAY_MS };
    },
  };
}
