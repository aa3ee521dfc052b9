import type { WriterMarks } from '../../orchestrator/model/platform-driver.ts';
import { isHostFailure, VirshError } from './errors.ts';
import { inTime, type Member } from './fleet.ts';
import { runHostScript } from './hosts/host-facts.ts';
import type { Platform } from './platform.ts';

/** The mark of the writer is a file in the state folder of each host. */
export function writerOf({ fleet: { hosts }, clock }: Pick<Platform, 'fleet' | 'clock'>): WriterMarks {
  const onHost = async (host: Member, args: readonly string[]): Promise<string> => {
    const place = { stateDir: host.options.state_dir };
    const asked = runHostScript(host.shell, place, ['writer', ...args]);
    const { status, lines, stderr } = await inTime(clock, hosts, host, asked);
    if (status === 0) return lines.find(([word]) => word === 'writer')?.[1] ?? '';
    throw new VirshError('other', `${host.name}: ${stderr.trim().slice(0, 300)}`);
  };
  /** Host failures count only if no host answers. */
  const onAll = async (...args: string[]): Promise<string[]> => {
    const answers = await Promise.allSettled(hosts.map((host) => onHost(host, args)));
    const texts = answers.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const problems = answers.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
    const isHostDown = (one: unknown): boolean => one instanceof VirshError && isHostFailure(one);
    const decisive = problems.find((one) => texts.length === 0 || !isHostDown(one));
    if (decisive !== undefined) throw decisive;
    return texts;
  };
  return { read: onAll, write: async (key, text) => void (await onAll(key, text)) };
}
