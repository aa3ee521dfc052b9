import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { collectLog } from '../../../../test/support/doubles/log.ts';
import { openFleet } from '../fleet.ts';
import { libvirtConfigSchema } from '../options.ts';
import { findKvmProblem } from './accelerator.ts';
import { openHostShell } from './host-shell.ts';

const place = { stateDir: '/var/lib/berth' };
const offered = { uefi: false, kvm: true };

/** A folder with this script as QEMU. */
function qemuThat(does: string): string {
  const bin = mkdtempSync(join(tmpdir(), 'berth-host-bin-'));
  onTestFinished(() => rmSync(bin, { recursive: true }));
  writeFileSync(join(bin, 'qemu-system-x86_64'), `#!/bin/sh\n${does}\n`, { mode: 0o755 });
  return bin;
}

function openHostWhereQemu(does: string) {
  const bin = qemuThat(does);
  const shell = openHostShell({ name: 'kvm-1', uri: 'qemu:///system' });
  const run: typeof shell.run = (script, args, timeoutMs) =>
    shell.run(`PATH=${bin}:$PATH\n${script}`, args, timeoutMs);
  return { name: shell.name, run };
}

it('KVM works where a guest on it finished', async () => {
  expect(await findKvmProblem(openHostWhereQemu('exit 67'), place, offered)).toBeUndefined();
});

it.each([
  ['the guest hangs', 'kill -9 $$', 'a test guest on it did not finish within 4 s'],
  ['QEMU fails', 'echo no MSR >&2; exit 134', 'QEMU on KVM ended with status 134: no MSR'],
  ['the guest powers off without a result', 'exit 0', 'QEMU on KVM ended with status 0'],
  ['QEMU is not installed', 'exit 127', 'is not installed'],
])('KVM does not work if %s [kvm-probed]', async (_name, does, finding) => {
  expect(await findKvmProblem(openHostWhereQemu(does), place, offered)).toContain(finding);
});

it('KVM is not tested where libvirt has none', async () => {
  const host = openHostWhereQemu('exit 67');
  expect(await findKvmProblem(host, place, { ...offered, kvm: false })).toBe('libvirt has no KVM');
});

it.each([
  [67, 'kvm', 0],
  [137, 'tcg', 1],
])(
  'a host whose test guest ends with %i has %s, and is tested once',
  async (status, accelerator, warnings) => {
    const bin = qemuThat(`echo tested >> "$0.log"; exit ${status}`);
    vi.stubEnv('PATH', `${bin}:${process.env['PATH']}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    const hosts = [{ name: 'kvm-1', datacenter: 'fra', public_ip: '192.0.2.1' }];
    const { log, lines } = collectLog();
    const { hosts: members } = openFleet(libvirtConfigSchema.parse({ driver: 'libvirt', hosts }), log);
    for (const _ of [1, 2]) expect(await members[0]?.fastestAccelerator(offered)).toBe(accelerator);
    expect(readFileSync(join(bin, 'qemu-system-x86_64.log'), 'utf8')).toBe('tested\n');
    expect(lines).toHaveLength(warnings);
    await members[0]?.close();
  },
);
