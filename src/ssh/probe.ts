import { parseSshPublicKey, type SshPublicKey } from '../contract/ssh-key.ts';
import type { ProbeResult, ProbeStep, SshProbe, SshTarget } from '../ports/ssh-probe.ts';
import { performance } from '../ports/timers.ts';
import { ProbeConnection, type ProbeLimits, type StepTimeouts } from './probe-connection.ts';
import { fingerprintOf } from './query.ts';

/** Below sshd's drop limit (`MaxStartups 10`); more than one, so that many keys are proved within one call. */
const AT_ONCE = 4;

const defaultTimeoutsMs: StepTimeouts = {
  connect: 5_000,
  banner: 5_000,
  handshake: 10_000,
  // The host key arrives within the handshake and is checked at once.
  host_key: 10_000,
  auth: 10_000,
};

export interface SshProbeOptions {
  stepTimeoutsMs?: Partial<Record<ProbeStep, number>>;
  /** Addresses that are never connected to, checked at each connection; absent: all are allowed. */
  isForbidden?: ((address: string) => boolean) | undefined;
}

/**
 * Proves a public SSH endpoint without a private key (O: "ONLINE means running and reachable with a live SSH
 * endpoint"). Each key gets its own connection, since a client stops offering keys after the first PK_OK. OpenSSH
 * counts each query as an authentication attempt: do not probe again once an endpoint has passed.
 */
export function createSshProbe(options: SshProbeOptions = {}): SshProbe {
  const timeoutsMs = { ...defaultTimeoutsMs, ...options.stepTimeoutsMs };
  const { isForbidden } = options;
  return {
    probe: (target, publicKeys, pin, withinMs = Number.POSITIVE_INFINITY) =>
      probe(target, publicKeys, pin, { timeoutsMs, endsAt: performance.now() + withinMs, isForbidden }),
  };
}

async function probe(
  target: SshTarget,
  publicKeys: readonly string[],
  pin: string | undefined,
  limits: ProbeLimits,
): Promise<ProbeResult> {
  const keys: SshPublicKey[] = [];
  for (const [keyIndex, line] of publicKeys.entries()) {
    const parsed = parseSshPublicKey(line);
    if ('problem' in parsed) {
      const detail = `key ${keyIndex + 1} of ${publicKeys.length} is not a public key: ${parsed.problem}`;
      return { ok: false, step: 'auth', keyIndex, detail };
    }
    keys.push(parsed.key);
  }

  const first = await new ProbeConnection(target, keys[0], pin, limits).run();
  if (!first.ok) return namingTheKey(first, 0, keys, target);
  for (let begin = 1; begin < keys.length; begin += AT_ONCE) {
    const group = keys.slice(begin, begin + AT_ONCE);
    // All connections must reach the same machine, so the host key of the first is pinned.
    const results = await Promise.all(
      group.map((key) => new ProbeConnection(target, key, first.hostKeyFingerprint, limits).run()),
    );
    for (const [offset, result] of results.entries())
      if (!result.ok) return namingTheKey(result, begin + offset, keys, target);
  }
  return first;
}

/** Adds to a failure at `auth` which key was refused. */
function namingTheKey(
  result: ProbeResult & { ok: false },
  keyIndex: number,
  keys: readonly SshPublicKey[],
  target: SshTarget,
): ProbeResult {
  const key = keys[keyIndex];
  if (result.step !== 'auth' || key === undefined) return result;
  const fingerprint = fingerprintOf(Buffer.from(key.base64, 'base64'));
  const name = `key ${keyIndex + 1} of ${keys.length} (${key.type} ${fingerprint})`;
  return { ...result, keyIndex, detail: `${name} ${result.detail} for user ${target.username}` };
}
