import { type Capabilities, runHostScript, type ScriptPlace } from './host-facts.ts';
import type { HostShell } from './host-shell.ts';

/**
 * Time limit of the test guest, which counts to 100 million: 0.1 s with KVM, 0.3 s emulated, and minutes if KVM opens
 * but interprets its guests.
 */
const TEST_WITHIN_S = 4;
/** The guest writes 0x21 to isa-debug-exit; QEMU then exits with twice that plus one. */
const GUEST_FINISHED = 0x21 * 2 + 1;

const reasons: Readonly<Record<number, string>> = {
  127: 'qemu-system-x86_64 or timeout, needed to test KVM, is not installed',
  // By `timeout -s KILL`.
  137: `libvirt offers KVM, but a test guest on it did not finish within ${TEST_WITHIN_S} s`,
};

/**
 * Why guests of the host cannot use KVM. Undefined if a test guest ran on it: on some machines libvirt offers KVM, and
 * every guest hangs.
 *
 * @throws {VirshError} if the host does not answer
 */
export async function findKvmProblem(
  host: HostShell,
  place: ScriptPlace,
  { kvm }: Capabilities,
): Promise<string | undefined> {
  if (!kvm) return 'libvirt has no KVM';
  const command = ['test-kvm', String(TEST_WITHIN_S)];
  const { status, stderr } = await runHostScript(host, place, command, (TEST_WITHIN_S + 10) * 1000);
  if (status === GUEST_FINISHED) return undefined;
  return reasons[status ?? 0] ?? `QEMU on KVM ended with status ${status}: ${stderr.trim().slice(0, 300)}`;
}
