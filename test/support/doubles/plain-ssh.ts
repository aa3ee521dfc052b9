import type { Clock } from '../../../src/ports/clock.ts';
import type { ProbeResult, SshProbe, SshTarget } from '../../../src/ports/ssh-probe.ts';
import type { PlainProvider } from './plain-provider.ts';

/** `hangs`: nothing answers until the probe's time is over · `closed` · `refuses`: no key is accepted. */
export type SshFault = 'none' | 'hangs' | 'closed' | 'refuses';

/** SSH of a provider's machines in memory: one that is ONLINE lets in the keys that it was made with. */
export class PlainSsh {
  /** What goes wrong at an instance. */
  fault: (instanceId: string) => SshFault = () => 'none';
  /** Every try, in the order in which they ended. */
  readonly probes: {
    at: number;
    instanceId: string | undefined;
    target: SshTarget;
    keys: readonly string[];
    ok: boolean;
  }[] = [];
  readonly probe: SshProbe;
  readonly #provider: PlainProvider;
  readonly #clock: Clock;

  constructor(provider: PlainProvider, clock: Clock) {
    this.#provider = provider;
    this.#clock = clock;
    this.probe = {
      probe: async (target, keys, _pin, withinMs = 10_000) => {
        const result = await this.#try(target, keys, withinMs);
        const instanceId = this.#at(target)?.id;
        this.probes.push({ at: clock.now(), instanceId, target, keys, ok: result.ok });
        return result;
      },
    };
  }

  async #try(target: SshTarget, keys: readonly string[], withinMs: number): Promise<ProbeResult> {
    const refused = { ok: false, step: 'connect', detail: 'connection refused' } as const;
    const instance = this.#at(target);
    if (instance === undefined) return refused;
    const fault = this.fault(instance.id);
    if (fault === 'hangs') {
      await new Promise<void>((resolve) => void this.#clock.setTimer(withinMs, resolve));
      return { ok: false, step: 'banner', detail: `no SSH banner within ${withinMs} ms` };
    }
    if (fault === 'closed') return refused;
    const known = this.#provider.sshKeys.get(instance.id) ?? [];
    const keyIndex = fault === 'refuses' ? 0 : keys.findIndex((key) => !known.includes(key));
    if (keyIndex !== -1) return { ok: false, step: 'auth', keyIndex, detail: 'the key was refused' };
    return { ok: true, hostKeyFingerprint: 'SHA256:plain' };
  }

  #at({ host, port }: SshTarget) {
    return this.#provider.instances.find(
      (it) => it.status === 'ONLINE' && it.public_ip === host && it.ssh_port === port,
    );
  }
}
