import type { Accelerator } from '../domain-xml.ts';
import { VirshError } from '../errors.ts';
import { type HostFacts, runHostScript, type ScriptPlace } from './host-facts.ts';
import type { HostShell } from './host-shell.ts';

/** What guests of a host run on, and what showed it. */
export interface AcceleratorVerdict {
  accelerator: Accelerator;
  /** Whether the operator has to know: guests are translated, ten times slower, though nobody asked for that. */
  doubtful: boolean;
  finding: string;
}

/**
 * A guest that counts to 100 million takes 0.1 s on a processor that runs it, 0.3 s translated, and minutes where KVM
 * opens but interprets its guests.
 */
const PROBE_WITHIN_S = 4;
/** The guest writes 0x21 to isa-debug-exit, which ends QEMU with twice that and one. */
const GUEST_FINISHED = 0x21 * 2 + 1;
/** Of `timeout -s KILL`. */
const KILLED = 137;
const NO_QEMU = 127;

/**
 * Tries KVM with a guest, since `/dev/kvm` can be there and open, and then hang every guest. What is not shown to work
 * is not used: TCG is slow, but it boots.
 */
export async function chooseAccelerator(
  host: HostShell,
  place: ScriptPlace,
  facts: HostFacts,
  wanted: 'auto' | Accelerator,
): Promise<AcceleratorVerdict> {
  if (wanted !== 'auto')
    return { accelerator: wanted, doubtful: false, finding: `${wanted} by the configuration, not tried` };
  const found = await probeKvm(host, place, facts);
  if (found === undefined)
    return { accelerator: 'kvm', doubtful: false, finding: 'a guest on KVM counted to 100 million in time' };
  return { accelerator: 'tcg', doubtful: true, finding: `${found}; guests run on TCG` };
}

/** Why KVM is not to be used; undefined: it works. */
async function probeKvm(
  host: HostShell,
  place: ScriptPlace,
  { virtualization, hasKvmDevice }: HostFacts,
): Promise<string | undefined> {
  if (!hasKvmDevice) return 'there is no /dev/kvm';
  if (virtualization === undefined) return '/proc/cpuinfo shows neither vmx nor svm';
  try {
    const command = ['probe', String(PROBE_WITHIN_S)];
    const { lines, stderr } = await runHostScript(host, place, command, (PROBE_WITHIN_S + 10) * 1000);
    const [, status, words = ''] = lines.find(([name]) => name === 'probe') ?? [];
    if (status === undefined) return `the guest on KVM could not be tried: ${stderr.trim().slice(0, 200)}`;
    return verdictOf(Number(status), words.trim());
  } catch (error) {
    if (error instanceof VirshError) return `the guest on KVM could not be tried: ${error.message}`;
    throw error;
  }
}

function verdictOf(status: number, words: string): string | undefined {
  if (status === GUEST_FINISHED) return undefined;
  if (status === KILLED) return `/dev/kvm opens, but a guest on it did not finish within ${PROBE_WITHIN_S} s`;
  if (status === NO_QEMU) return 'qemu-system-x86_64 is not there to try KVM with';
  return `QEMU on KVM ended with status ${status}: ${words}`;
}
