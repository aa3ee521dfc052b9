import type { CreateInstanceRequest, InstanceStatus } from '../../contract/instance.ts';
import { Fatal } from '../../ports/errors.ts';

/** An instance as the command line needs it, whoever asks. */
export interface Machine {
  id: string;
  name: string | null;
  status: InstanceStatus;
  region: string;
  endpoint: { user: string; host: string; port: number } | null;
  error: string | null;
  /** What happens now: the step, its end at most, the platform's last word. Null: the server does not show it. */
  progress: string | null;
  /** The last lines of the guest's console that the server stores. Null: none. */
  console: string | null;
}

/** The instances of a tenant, or with an operator's key those of all. */
export interface Machines {
  /** Those that an argument may mean. */
  search(text: string): Promise<readonly Pick<Machine, 'id' | 'name' | 'region'>[]>;
  /** Null: it is gone. */
  get(machine: Pick<Machine, 'id' | 'region'>): Promise<Machine | null>;
  create(
    request: CreateInstanceRequest,
    account: string | undefined,
  ): Promise<{ id: string; region: string }>;
}

const FLAGS: Readonly<Record<string, string>> = {
  configuration_id: '--offer',
  ssh_keys: '--key',
  operating_system_image: '--image',
  cloud_init: '--cloud-init',
};

/** Names the flags in place of the fields of a create. */
export function inFlags(text: string): string {
  return text.replace(/\b(configuration_id|ssh_keys|operating_system_image|cloud_init)\b/g, (field) =>
    String(FLAGS[field]),
  );
}

/** Shorter texts are more likely the name of a machine that is gone than the beginning of an id. */
const SHORTEST_ID = 8;

/** The one with this id or name, or whose id begins with the text. @throws {Fatal} unless there is exactly one */
function choose<M extends Pick<Machine, 'id' | 'name'>>(machines: readonly M[], text: string): M {
  const found = [
    machines.filter(({ id }) => id === text),
    machines.filter(({ name }) => name === text),
    machines.filter(({ id }) => text.length >= SHORTEST_ID && id.startsWith(text)),
  ].find((some) => some.length > 0);
  const [only, ...others] = found ?? [];
  if (only === undefined) throw new Fatal(`There is no instance ${text}: see \`berth instances ls\`.`);
  if (others.length === 0) return only;
  const ids = [only, ...others].map(({ id, name }) => (name === null ? id : `${id} (${name})`));
  throw new Fatal(`${text} may be ${ids.join(' or ')}: give the id of the one that you mean.`);
}

/** The instance that an argument means. @throws {Fatal} */
export async function find(machines: Machines, text: string): Promise<Machine> {
  const machine = await machines.get(choose(await machines.search(text), text));
  if (machine === null) throw new Fatal(`The instance ${text} is gone: see \`berth instances ls\`.`);
  return machine;
}
