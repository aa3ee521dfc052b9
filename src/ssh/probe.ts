import { parseSshPublicKey, type SshPublicKey } from '../contract/ssh-key.ts';
import type { ProbeResult, ProbeStep, SshProbe, SshTarget } from '../orchestrator/ports/ssh-probe.ts';
import { ProbeConnection, type StepTimeouts } from './probe-connection.ts';
import { fingerprintOf } from './query-key.ts';

const defaultTimeoutsMs: StepTimeouts = {
  connect: 5_000,
  banner: 5_000,
  handshake: 10_000,
  // The host key arrives within the handshake and is judged at once.
  host_key: 10_000,
  auth: 10_000,
};

/**
 * Proves a public SSH endpoint without a private key (O: "ONLINE means running and reachable with a
 * live SSH endpoint"). The keys are offered one after another, each on a connection of its own: a
 * client stops offering after the first PK_OK. OpenSSH counts a query as an authentication attempt,
 * so an endpoint that passed once is best left alone.
 */
export function createSshProbe(
  options: { stepTimeoutsMs?: Partial<Record<ProbeStep, number>> } = {},
): SshProbe {
  const timeoutsMs = { ...defaultTimeoutsMs, ...options.stepTimeoutsMs };
  return { probe: (target, publicKeys, pin) => probe(target, publicKeys, pin, timeoutsMs) };
}

async function probe(
  target: SshTarget,
  publicKeys: readonly string[],
  pin: string | undefined,
  timeoutsMs: StepTimeouts,
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

  const first = await new ProbeConnection(target, keys[0], pin, timeoutsMs).run();
  if (!first.ok) return namingTheKey(first, 0, keys, target);
  for (const [keyIndex, key] of keys.entries()) {
    if (keyIndex === 0) continue;
    // All connections must reach the same machine, so the key of the first one is pinned.
    const next = await new ProbeConnection(target, key, first.hostKeyFingerprint, timeoutsMs).run();
    if (!next.ok) return namingTheKey(next, keyIndex, keys, target);
  }
  return first;
}

/** Says which key a failure at `auth` is about. */
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
