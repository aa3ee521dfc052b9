import type { ServerProcess } from '../../kernel/process.ts';
import type { Hosts, PlatformHost } from '../platform/hosts.ts';
import type { Machine } from '../platform/platform.ts';

type HostOf = Pick<Hosts<Machine>, 'of'>;

/**
 * The servers that a move of a machine is hidden from. A silent host answers, the machine moves there, and the host is
 * silent again before the server lists the machines. No driver can distinguish that from a removal.
 */
export class HiddenMoves {
  /** For each host that answers again, the servers that have not listed the machines since. */
  readonly #unlisted = new Map<PlatformHost, ReadonlySet<ServerProcess>>();
  /** For each machine, the servers that its last move is hidden from. */
  readonly #hiddenFrom = new Map<Machine, ReadonlySet<ServerProcess>>();

  hostAnswers(host: PlatformHost, servers: Iterable<ServerProcess>): void {
    this.#unlisted.set(host, new Set(servers));
  }

  moved(machine: Machine, host: PlatformHost): void {
    this.#hiddenFrom.set(machine, this.#unlisted.get(host) ?? new Set());
  }

  listed(server: ServerProcess, hosts: HostOf): void {
    const others = (servers: ReadonlySet<ServerProcess>) =>
      new Set([...servers].filter((one) => one !== server));
    for (const [host, servers] of this.#unlisted)
      if (host.state === 'answers') this.#unlisted.set(host, others(servers));
    for (const [machine, servers] of this.#hiddenFrom)
      if (hosts.of(machine)?.state === 'answers') this.#hiddenFrom.set(machine, others(servers));
  }

  isHidden(machine: Machine, from: ServerProcess): boolean {
    return this.#hiddenFrom.get(machine)?.has(from) === true;
  }
}
