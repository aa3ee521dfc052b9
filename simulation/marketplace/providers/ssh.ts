import type { ProbeResult, SshProbe, SshTarget } from '../../../src/ports/ssh-probe.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import type { MarketBase } from './market-base.ts';
import type { SimulatedProvider } from './simulated-provider.ts';

const CLOSED = { ok: false, step: 'connect', detail: 'connection refused' } as const;

/** SSH of a provider's machines, as one process of a replica reaches it: with latency and faults. */
export function marketProbe(
  world: MarketBase,
  provider: SimulatedProvider,
  process: ServerProcess,
  chance: Chance,
): SshProbe {
  const { scheduler, journal } = world;
  return {
    probe: (target, keys, _pin, withinMs = 10_000) =>
      process.reach(async () => {
        await scheduler.sleep(chance.happens(0.2) ? chance.whole(500, 5_000) : chance.whole(1, 200));
        if (!world.isCalm && chance.happens(0.05)) {
          await scheduler.sleep(withinMs);
          return { ok: false, step: 'banner', detail: `no SSH banner within ${withinMs} ms` };
        }
        const result = logIn(provider, target, keys, scheduler.now);
        journal.note(provider.id, `SSH ${target.host}: ${result.ok ? 'let in' : result.step}`);
        return result;
      }),
  };
}

/** How the machine at the address answers. */
function logIn(
  provider: SimulatedProvider,
  { host, port, username }: SshTarget,
  keys: readonly string[],
  now: number,
): ProbeResult {
  provider.recordStatuses();
  const instance = provider.living.find(
    (it) => it.status === 'ONLINE' && it.public_ip === host && it.ssh_port === port,
  );
  const machine = provider.machines.get(instance?.id ?? '');
  if (instance === undefined || machine === undefined || machine.sshAfterMs === null) return CLOSED;
  const onlineAt = machine.history.find(({ status }) => status === 'ONLINE')?.at ?? now;
  if (now < onlineAt + machine.sshAfterMs) return CLOSED;
  const known = provider.plain.sshKeys.get(instance.id) ?? [];
  const isKnown = keys.length > 0 && keys.every((key) => known.includes(key));
  if (instance.ssh_username !== username || !isKnown)
    return { ok: false, step: 'auth', detail: 'the key was refused' };
  machine.provedAt ??= now;
  return { ok: true, hostKeyFingerprint: `SHA256:${instance.id}` };
}
