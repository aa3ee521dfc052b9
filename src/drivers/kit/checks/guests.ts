import { isIP } from 'node:net';
import type { Endpoint, ObservedMachine } from '../../../orchestrator/model/platform-driver.ts';
import { CheckFailure, gone, refused, same, show, Untried } from './bench.ts';
import type { DriverCheck } from './check.ts';

const NO_GUEST = 'this suite cannot log in to the machines';
const MAX_CONSOLE_BYTES = 16 * 1024;

export const guestChecks: readonly DriverCheck[] = [
  {
    id: 'endpoint',
    title: 'gives each machine its own, stable endpoint',
    why: 'If two machines share an address and port, one tenant logs in to the other’s machine.',
    remedy: 'Give each machine an address and port of its own, and keep them for its life.',
    async run(bench) {
      const a = await bench.create(bench.ref('a'));
      const first = endpointOf(a);
      if (isIP(first.publicIp) === 0)
        throw new CheckFailure(`publicIp is ${show(first.publicIp)}, not an IP address`);
      const { sshPort, sshUsername, portForwards, hostKeyFingerprint } = first;
      if (!Number.isInteger(sshPort) || sshPort < 1 || sshPort > 65_535)
        throw new CheckFailure(`sshPort is ${sshPort}`);
      if (!/^[a-z_][a-z0-9_-]*$/.test(sshUsername))
        throw new CheckFailure(`sshUsername is ${show(sshUsername)}`);
      if (portForwards !== undefined) {
        const ssh = portForwards.find((forward) => forward.internal_port === 22);
        same('the forwarded SSH port, compared with sshPort', ssh?.external_port, sshPort);
      }
      if (hostKeyFingerprint !== undefined && !/^SHA256:[A-Za-z0-9+/]{43}$/.test(hostKeyFingerprint))
        throw new CheckFailure(
          `hostKeyFingerprint is ${show(hostKeyFingerprint)}, expected SHA256:… as ssh-keygen prints it`,
        );
      same('the endpoint of a repeated create', (await bench.create(a.ref)).endpoint, first);
      if (bench.context.units === 1) return undefined;
      const second = endpointOf(await bench.create(bench.ref('b')));
      if (second.publicIp === first.publicIp && second.sshPort === sshPort)
        throw new CheckFailure(`two machines have the endpoint ${first.publicIp}:${sshPort}`);
    },
  },
  {
    id: 'keys',
    title: 'accepts every injected SSH key',
    why: 'The contract injects all keys, not the first one.',
    remedy: 'Put every line of ssh_keys into authorized_keys of the login user.',
    async run(bench) {
      const { guest } = bench.context;
      if (guest === undefined) throw new Untried(NO_GUEST);
      const machine = await bench.create(bench.ref('a'));
      const { sshKeys } = bench.spec(machine.ref);
      if (sshKeys.length < 2) throw new Untried('the machines of this suite have fewer than two keys');
      await bench.eventually('the keys', () => guest.findRefusedKey(machine, sshKeys));
    },
  },
  {
    id: 'disk-kept',
    title: 'keeps the disk across a stop, a start and a restart',
    why: 'The disk of a stopped instance is part of what is sold.',
    remedy: 'Stop and restart without recreating the disk.',
    async run(bench) {
      const { stop, resume, restart } = bench.manifest;
      const run = bench.context.guest?.run;
      if (run === undefined) throw new Untried(NO_GUEST);
      const canResume = stop && resume;
      if (!canResume && !restart)
        throw new Untried('the manifest says that it can neither resume nor restart');
      let machine = await bench.create(bench.ref('a'));
      await bench.eventually(
        'a line in the machine',
        async () => void (await run(machine, 'echo kept > kept; sync')),
      );
      const assertKept = () => bench.eventually('the file', () => differs(run(machine, 'cat kept'), 'kept'));
      if (canResume) {
        await bench.stop(machine.ref);
        machine = await bench.start(machine.ref);
        await assertKept();
      }
      if (restart) {
        machine = await bench.finish('restart', (cookie) => bench.driver.restart(machine.ref, 'one', cookie));
        await assertKept();
      }
    },
  },
  {
    id: 'cloud-init',
    title: 'runs cloud-init, or declares that it cannot',
    why: 'An instance whose cloud_init was silently dropped looks fine, but is not what the tenant ordered.',
    remedy: 'Hand user_data and vendor_data to the machine as they are; or say cloud_init_bytes: 0.',
    async run(bench) {
      const ref = bench.ref('a');
      const content = 'a "file"\n# of ours: {x}\n';
      const cloudInit = {
        write_files: [{ path: '/opt/kit-file', content, permissions: '0644' }],
        runcmd: ['whoami > /opt/kit-ran'],
      };
      if (bench.manifest.cloudInitBytes === 0) {
        refused('create', await bench.driver.create(bench.spec(ref, { cloudInit }), null), 'unsupported');
        gone('get of the refused machine', await bench.driver.get(ref));
        return undefined;
      }
      const machine = await bench.create(ref, { cloudInit });
      const run = bench.context.guest?.run;
      if (run === undefined) throw new Untried(NO_GUEST);
      await bench.eventually('runcmd', () => differs(run(machine, 'cat /opt/kit-ran'), 'root'));
      await bench.eventually('write_files', () => differs(run(machine, 'cat /opt/kit-file'), content.trim()));
    },
  },
  {
    id: 'console-tail',
    title: 'returns at most 16 KiB from the end of the console, and nothing for a missing machine',
    why: 'Berth logs it when a machine does not come up.',
    remedy: 'Answer console with at most the last 16 KiB, and with null if there is no machine.',
    async run(bench) {
      const { driver } = bench;
      if (driver.consoleTail === undefined) throw new Untried('the driver has no consoleTail');
      const { ref } = await bench.create(bench.ref('a'));
      const tail = (await driver.consoleTail(ref)) ?? '';
      if (Buffer.byteLength(tail) > MAX_CONSOLE_BYTES)
        throw new CheckFailure(`consoleTail gave ${Buffer.byteLength(tail)} bytes`);
      same('consoleTail of a missing machine', await driver.consoleTail(bench.ref('none')), undefined);
    },
  },
];

async function differs(reading: Promise<string>, expected: string): Promise<string | undefined> {
  const text = (await reading).trim();
  return text === expected ? undefined : `expected ${show(expected)}, got ${show(text)}`;
}

function endpointOf({ ref, endpoint }: ObservedMachine): Endpoint {
  if (endpoint === undefined) throw new CheckFailure(`${ref} has no endpoint`);
  return endpoint;
}
