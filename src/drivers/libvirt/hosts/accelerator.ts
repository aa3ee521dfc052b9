import type { Accelerator } from '../domain-xml.ts';
import { VirshError } from '../errors.ts';
import { type HostFacts, runHostScript, type ScriptPlace } from './host-facts.ts';
import type { HostShell } from './host-shell.ts';

/** The accelerator of a host's guests, and the evidence. */
export interface AcceleratorVerdict {
  accelerator: Accelerator;
  /** Whether the operator should know: guests are emulated, ten times slower, although that was not configured. */
  doubtful: boolean;
  finding: string;
}

/**
 * Time limit of the test guest, which counts to 100 million: 0.1 s with KVM, 0.3 s emulated, and minutes if KVM opens
 * but interprets its guests.
 */
const PROBE_WITHIN_S = 4;
/** The guest writes 0x21 to isa-debug-exit; QEMU then exits with twice that plus one. */
const GUEST_FINISHED = 0x21 * 2 + 1;
/** Exit status of `timeout -s KILL`. */
const KILLED = 137;
const NO_QEMU = 127;

/**
 * Tries KVM with a test guest, since `/dev/kvm` may exist and open but hang every guest. KVM is used only if the test
 * succeeds: TCG is slow, but it boots.
 */
export async function chooseAccelerator(
  host: HostShell,
  place: ScriptPlace,
  facts: HostFacts,
  wanted: 'auto' | Accelerator,
): Promise<AcceleratorVerdict> {
  if (wanted !== 'auto')
    return { accelerator: wanted, doubtful: false, finding: `${wanted} is configured and was not tested` };
  const found = await probeKvm(host, place, facts);
  if (found === undefined) return { accelerator: 'kvm', doubtful: false, finding: 'a test guest ran on KVM' };
  return { accelerator: 'tcg', doubtful: true, finding: `${found}; guests run on TCG` };
}

/** Why KVM cannot be used. Undefined if it works. */
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
    if (status === undefined)
      return `the test guest on KVM could not be started: ${stderr.trim().slice(0, 200)}`;
    return verdictOf(Number(status), words.trim());
  } catch (error) {
    if (error instanceof VirshError) return `the test guest on KVM could not be started: ${error.message}`;
    throw error;
  }
}

function verdictOf(status: number, words: string): string | undefined {
  if (status === GUEST_FINISHED) return undefined;
  if (status === KILLED)
    return `/dev/kvm opens, but the test guest did not finish within ${PROBE_WITHIN_S} s`;
  if (status === NO_QEMU) return 'qemu-system-x86_64, needed to test KVM, is not installed';
  return `QEMU on KVM ended with status ${status}: ${words}`;
}
