import { z } from 'zod';
import type { ProbeResult } from '../../../ports/ssh-probe.ts';
import { delay } from '../connection.ts';
import type { SshFault } from '../fault.ts';

const none = z.object({});
const LIVE = 'O: ONLINE means reachable by SSH.';
const KEYS = 'O: every key of ssh_keys logs in before an instance is ONLINE.';
const PATIENCE_MS = 10_000;

function sshFault(
  does: string,
  strikes: string,
  probe: (at: {
    own: () => Promise<ProbeResult>;
    keys: readonly string[];
    pinned: string | undefined;
  }) => Promise<ProbeResult>,
): SshFault<typeof none> {
  return {
    layer: 'ssh',
    on: [],
    params: none,
    times: 'sticky',
    does,
    strikes,
    probe: ({ keys, pinned }, own) => probe({ own, keys, pinned }),
  };
}

export const sshFaults = {
  'ssh-refused': sshFault('Nothing listens on the SSH port.', LIVE, async () => ({
    ok: false,
    step: 'connect',
    detail: 'connection refused',
  })),
  'ssh-silent': {
    ...sshFault('The SSH port takes a connection and says nothing.', LIVE, async ({ own }) => own()),
    async probe({ clock, withinMs = PATIENCE_MS }) {
      await delay(clock, withinMs);
      return { ok: false, step: 'banner', detail: `no SSH banner within ${withinMs} ms` };
    },
  },
  'ssh-no-handshake': sshFault('The SSH handshake breaks off.', LIVE, async () => ({
    ok: false,
    step: 'handshake',
    detail: 'the connection was closed in the handshake',
  })),
  'ssh-wrong-host-key': sshFault(
    'Another machine answers at the address, with a different host key.',
    'Design: the host key is pinned; another machine at the address proves nothing.',
    async ({ own, pinned }) => {
      const other = 'SHA256:anotherMachineAnswersAtThisAddress000000000';
      if (pinned !== undefined) return { ok: false, step: 'host_key', detail: `the host key is ${other}` };
      const result = await own();
      return result.ok ? { ok: true, hostKeyFingerprint: other } : result;
    },
  ),
  'ssh-key-refused': sshFault('The machine refuses every key.', KEYS, async ({ own }) => {
    const result = await own();
    return result.ok ? { ok: false, step: 'auth', keyIndex: 0, detail: 'the key was refused' } : result;
  }),
  'ssh-last-key-refused': sshFault(
    'The machine accepts all keys except the last.',
    KEYS,
    async ({ own, keys }) => {
      const result = await own();
      return result.ok
        ? { ok: false, step: 'auth', keyIndex: keys.length - 1, detail: 'the key was refused' }
        : result;
    },
  ),
} as const satisfies Record<string, SshFault>;
