import type { OwnerRef, Step } from '../../src/orchestrator/model/platform-driver.ts';
import type { IncusEngine } from '../engine/incus/engine.ts';
import type { LibvirtEngine } from '../engine/libvirt/engine.ts';
import type { OpenStackEngine } from '../engine/openstack/engine.ts';
import type { EnginePlant, EngineWorld } from '../engine/world.ts';
import type { ServerProcess } from '../kernel/process.ts';
import type { Mutant } from './mutant.ts';
import { hide, idOf, wrapDrivers } from './wrap.ts';

const HOST = 'kvm-1';
const VOLUMES = '/1.0/storage-pools/default/volumes/custom';
const NEUTRON = 'https://neutron.regionone.example:9696/v2.0';
const PATIENCE_MS = 2_000;

/** Does something wrong once the driver has made, stopped or removed a machine. */
const after = (
  method: 'create' | 'stop' | 'destroy',
  wrong: (world: EngineWorld, process: ServerProcess, ref: OwnerRef) => Promise<unknown>,
  outcome: Step<unknown>['outcome'] = 'done',
): EnginePlant =>
  wrapDrivers((driver, { world, process }) => ({
    [method]: async (first: OwnerRef | { ref: OwnerRef }, ...rest: unknown[]) => {
      const call = driver[method] as (...args: unknown[]) => Promise<Step<unknown>>;
      const step = await call(first, ...rest);
      if (step.outcome === outcome)
        await wrong(world, process, typeof first === 'string' ? first : first.ref);
      return step;
    },
  }));

const virsh = ({ engine }: EngineWorld, process: ServerProcess, args: readonly string[], input?: string) =>
  (engine as LibvirtEngine).command(process, HOST, args, input);
const incus = ({ engine }: EngineWorld, ...of: Parameters<IncusEngine['request']>) =>
  (engine as IncusEngine).request(...of);

export const engineMutants: readonly Mutant<EnginePlant>[] = [
  {
    id: 'lease-ends-first',
    simulation: 'libvirt',
    title: 'a lease ends while its call still runs',
    plant: wrapDrivers((driver, { clock }) => {
      const giveUp = <T>(call: Promise<T>): Promise<T> => {
        const { promise, reject } = Promise.withResolvers<T>();
        clock.setTimer(PATIENCE_MS, () => reject(new Error('planted: no answer in time')));
        return Promise.race([call, promise]);
      };
      return {
        create: (...args) => giveUp(driver.create(...args)),
        stop: (...args) => giveUp(driver.stop(...args)),
        destroy: (...args) => giveUp(driver.destroy(...args)),
      };
    }),
  },
  {
    id: 'missing-row-overlooked',
    simulation: 'libvirt',
    title: 'a machine without a row is never looked for',
    plant: wrapDrivers((driver, { world }) =>
      hide(driver, (ref) => world.inspector.history.instance(idOf(ref)) === undefined),
    ),
  },
  {
    id: 'found-by-name',
    simulation: 'libvirt',
    title: 'a machine is looked up by its name, which a rename changes',
    commands: 60,
    plant: {
      file: 'src/drivers/libvirt/fleet.ts',
      anchor: 'const uuid = uuidOf(ref);',
      replacement: 'const uuid = ref;',
    },
  },
  {
    id: 'copy-counted',
    simulation: 'libvirt',
    title: 'a copy of a machine counts as the machine because it has its mark',
    plant: {
      file: 'src/drivers/libvirt/domain-xml.ts',
      anchor: 'uuid === uuidOf(mark.ref)',
      replacement: "uuid !== ''",
    },
  },
  {
    id: 'created-over',
    simulation: 'libvirt',
    title: 'a create, even a late one, deletes an existing disk of the same name',
    plant: wrapDrivers((driver, { world, process }) => ({
      create: async (spec, ...rest) => {
        await virsh(world, process, ['vol-delete', '--pool', 'berth', '--', `${spec.ref}.qcow2`]).catch(
          () => '',
        );
        return driver.create(spec, ...rest);
      },
    })),
  },
  {
    id: 'disk-emptied',
    simulation: 'libvirt',
    title: 'the disk of a machine that was stopped is emptied',
    plant: after('stop', (world, process, ref) =>
      virsh(world, process, ['vol-upload', '--pool', 'berth', `${ref}.qcow2`, '/dev/stdin']),
    ),
  },
  {
    id: 'port-shared',
    simulation: 'libvirt',
    title: 'two machines are given one port of their host',
    plant: after(
      'create',
      async (world, process, ref) => {
        const xml = await virsh(world, process, ['dumpxml', '--inactive', '--', ref]);
        const changed = xml.replace(/host-port="\d+"/, 'host-port="30000"');
        await virsh(world, process, ['define', '/dev/stdin'], changed);
      },
      'pending',
    ),
  },
  {
    id: 'file-left',
    simulation: 'libvirt',
    title: 'a file of a machine is left when it is destroyed',
    plant: after('destroy', (world, process, ref) =>
      virsh(world, process, ['vol-create-as', 'berth', `${ref}.left`, '1M', '--format', 'raw']),
    ),
  },
  {
    id: 'copy-believed',
    simulation: 'incus',
    title: 'the copy of a moved volume counts as complete while it is still being made',
    plant: wrapDrivers(({ volumes }, { clock }) => {
      const copy = volumes?.copy?.bind(volumes);
      if (volumes === undefined || copy === undefined) return {};
      const early: typeof copy = async (ref, spec, ...rest) => {
        const step = await copy(ref, spec, ...rest);
        const { host, sizeGb } = spec;
        const value = {
          ref: spec.ref,
          attachedTo: [],
          createdAt: clock.now(),
          sizeGb,
          ...(host !== undefined && { host }),
        };
        return step.outcome === 'pending' ? { outcome: 'done', value } : step;
      };
      return { volumes: { ...volumes, copy: early } };
    }),
  },
  {
    id: 'volume-replaced',
    simulation: 'incus',
    title:
      'a late create makes a second volume of the same name on another member, and the first one is removed',
    plant: wrapDrivers(({ volumes }, { world, process }) => {
      if (volumes === undefined) return {};
      const create: typeof volumes.create = async (spec, ...rest) => {
        const step = await volumes.create(spec, ...rest);
        if (step.outcome !== 'done' || step.value.host === undefined) return step;
        const { ref } = spec;
        const { host } = step.value;
        const other = world.engine.hosts.find(({ name }) => name !== host);
        if (other === undefined) return step;
        await incus(world, process, {
          method: 'POST',
          path: VOLUMES,
          query: { target: other.name },
          body: { name: ref },
        });
        await incus(world, process, { method: 'DELETE', path: `${VOLUMES}/${ref}`, query: { target: host } });
        return step;
      };
      return { volumes: { ...volumes, create } };
    }),
  },
  {
    id: 'refusal-untold',
    simulation: 'incus',
    title: 'a removal that is refused is taken for one that goes on',
    plant: wrapDrivers((driver) => ({
      destroy: async (ref, cookie, ...rest) => {
        const step = await driver.destroy(ref, cookie === 'waits' ? null : cookie, ...rest);
        return step.outcome === 'failed' ? { outcome: 'pending', cookie: 'waits', pollAfterMs: 5_000 } : step;
      },
    })),
  },
  {
    id: 'refuser-kept',
    simulation: 'incus',
    title: 'a host that refuses each create stays in placement',
    plant: {
      file: 'src/orchestrator/capacity/cordons.ts',
      anchor: "cordon.kind === 'host' &&",
      replacement: "cordon.refusals === null && cordon.kind === 'host' &&",
    },
  },
  {
    id: 'pool-untried',
    simulation: 'incus',
    title: 'a pool that takes no writes is not noticed',
    commands: 60,
    plant: {
      file: 'src/drivers/incus/fleet.ts',
      anchor: 'isTried ? await tryWrite(api, name, member) : undefined',
      replacement: 'undefined',
    },
  },
  {
    id: 'frozen-untold',
    simulation: 'libvirt',
    title: 'a machine that libvirt does not answer about raises no alarm',
    commands: 60,
    plant: {
      file: 'src/drivers/libvirt/machines.ts',
      anchor: 'isLastKnown ? silenceFault(host.name, domain) : found',
      replacement: 'found',
    },
  },
  {
    id: 'writer-ignored',
    simulation: 'openstack',
    title: 'a server goes on although another has taken the platform over',
    plant: {
      file: 'src/orchestrator/platform/writer-mark.ts',
      anchor: 'if (isBehind)',
      replacement: 'if (false)',
    },
  },
  {
    id: 'port-left',
    simulation: 'openstack',
    title: 'a port is left when a machine is destroyed',
    plant: after('destroy', ({ engine }, process, ref) => {
      const openstack = engine as OpenStackEngine;
      const port = {
        name: ref,
        network_id: openstack.cloud.networks[0]?.id,
        description: `berth ${ref} made`,
      };
      return openstack.request(process, 'POST', `${NEUTRON}/ports`, { port });
    }),
  },
];
