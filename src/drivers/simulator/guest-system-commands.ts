import { createHash } from 'node:crypto';
import { type GuestFacts, pause } from './guest.ts';
import type { Command, CommandCall } from './guest-commands.ts';

const CLOUD_INIT_POLL_MS = 50;
const KERNEL = '6.8.0-45-generic';
const ids: Record<string, string> = {
  root: 'uid=0(root) gid=0(root) groups=0(root)',
  ubuntu: 'uid=1000(ubuntu) gid=1000(ubuntu) groups=1000(ubuntu),4(adm),27(sudo)',
};

function print(make: (call: CommandCall) => string): Command {
  return (call) => {
    call.out(`${make(call)}\n`);
    return 0;
  };
}

function uptime({ guest }: CommandCall): string {
  const now = guest.clock.now();
  const minutes = Math.floor((now - guest.facts().bootedAt) / 60_000);
  const hours = Math.floor(minutes / 60);
  const up = hours === 0 ? `${minutes} min` : `${hours}:${String(minutes % 60).padStart(2, '0')}`;
  return ` ${new Date(now).toISOString().slice(11, 19)} up ${up},  1 user,  load average: 0.00, 0.00, 0.00`;
}

/** Like free(1) -g: a little less than what was sold, as in a real guest. */
function free({ guest }: CommandCall): string {
  const total = Math.max(1, Math.floor(guest.facts().spec.memoryGb * 0.98));
  const column = (value: number): string => String(value).padStart(12);
  return [
    '               total        used        free      shared  buff/cache   available',
    `Mem:    ${[total, 0, total, 0, 0, total].map(column).join('')}`,
    `Swap:   ${[0, 0, 0].map(column).join('')}`,
  ].join('\n');
}

function diskFree({ guest }: CommandCall): string {
  const { spec, volumes } = guest.facts();
  const row = (device: string, sizeGb: number, path: string): string =>
    `${device.padEnd(16)}${`${sizeGb}G`.padStart(6)}  1.6G${`${Math.max(0, sizeGb - 2)}G`.padStart(6)}   1% ${path}`;
  return [
    'Filesystem        Size  Used Avail Use% Mounted on',
    row('/dev/vda1', spec.rootDiskGb, '/'),
    ...volumes.map((volume, index) =>
      row(`/dev/${diskName(index + 1)}`, volume.sizeGb, `/mnt/${volume.ref}`),
    ),
  ].join('\n');
}

function listBlockDevices({ guest }: CommandCall): string {
  const { spec, volumes } = guest.facts();
  const row = (name: string, minor: number, sizeGb: number, type: string, path: string): string =>
    `${name.padEnd(8)}252:${String(minor).padEnd(4)}0 ${`${sizeGb}G`.padStart(6)}  0 ${type} ${path}`.trimEnd();
  return [
    'NAME    MAJ:MIN RM   SIZE RO TYPE MOUNTPOINTS',
    row('vda', 0, spec.rootDiskGb, 'disk', ''),
    row('└─vda1', 1, spec.rootDiskGb, 'part', '/'),
    ...volumes.map((volume, index) =>
      row(diskName(index + 1), 16 * (index + 1), volume.sizeGb, 'disk', `/mnt/${volume.ref}`),
    ),
  ].join('\n');
}

function diskName(index: number): string {
  return `vd${String.fromCharCode('a'.charCodeAt(0) + (index % 26))}`;
}

interface Gpu {
  model: string;
  uuid: string;
}

function gpusOf({ spec }: GuestFacts): Gpu[] {
  const name = spec.gpuType ?? 'GPU';
  const model = /nvidia/i.test(name) ? name : `NVIDIA ${name}`;
  return Array.from({ length: spec.gpuCount }, (_, index) => {
    const hex = createHash('sha256').update(`${spec.ref}/${index}`).digest('hex');
    const uuid = [
      hex.slice(0, 8),
      hex.slice(8, 12),
      hex.slice(12, 16),
      hex.slice(16, 20),
      hex.slice(20, 32),
    ].join('-');
    return { model, uuid: `GPU-${uuid}` };
  });
}

/** A guest without GPUs has no driver either. */
const nvidiaSmi: Command = ({ guest, args, out, err }) => {
  const gpus = gpusOf(guest.facts());
  if (gpus.length === 0) return undefined;
  const [option] = args;
  if (option === '-L' || option === '--list-gpus') {
    for (const [index, gpu] of gpus.entries()) out(`GPU ${index}: ${gpu.model} (UUID: ${gpu.uuid})\n`);
    return 0;
  }
  if (option?.startsWith('--query-gpu=')) {
    const fields = option.slice('--query-gpu='.length).split(',');
    if (!args.join(' ').includes('noheader')) out(`${fields.join(', ')}\n`);
    for (const [index, gpu] of gpus.entries()) {
      const values: Record<string, string> = {
        name: gpu.model,
        gpu_name: gpu.model,
        uuid: gpu.uuid,
        gpu_uuid: gpu.uuid,
        index: String(index),
        count: String(gpus.length),
      };
      out(`${fields.map((field) => values[field.trim()] ?? '[N/A]').join(', ')}\n`);
    }
    return 0;
  }
  if (option !== undefined) {
    err(`Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n`);
    return 1;
  }
  const line = `+${'-'.repeat(77)}+`;
  const row = (text: string): string => `| ${text.padEnd(76)}|`;
  const rows = gpus.map((gpu, index) =>
    row(`${String(index).padStart(3)}  ${gpu.model.padEnd(40)}  P0    0%  Default`),
  );
  out(
    [
      line,
      row('NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4'),
      line,
      ...rows,
      line,
      '',
    ].join('\n'),
  );
  return 0;
};

/** Runs `act` for root only, as polkit would say. */
function asRoot(what: string, act: (call: CommandCall) => void): Command {
  return (call) => {
    if (call.user === 'root') {
      act(call);
      return 0;
    }
    call.err(`Call to ${what} failed: Interactive authentication required.\n`);
    return 1;
  };
}

const powerOff = asRoot('PowerOff', ({ guest }) => guest.powerOff());
const reboot = asRoot('Reboot', ({ guest }) => guest.reboot());

function isInstalled(facts: GuestFacts, name: string): boolean {
  const packages = facts.spec.cloudInit?.packages ?? [];
  return facts.cloudInit === 'done' && packages.some((installed) => installed.split('=', 1)[0] === name);
}

const cloudInit: Command = async ({ guest, args, out, err, signal }) => {
  if (args[0] !== 'status') {
    err('usage: cloud-init status [--wait]\n');
    return 2;
  }
  while (args.includes('--wait') && guest.facts().cloudInit === 'running') {
    if ((await pause(CLOUD_INIT_POLL_MS, guest, signal)) !== 0) return 130;
  }
  out(`status: ${guest.facts().cloudInit}\n`);
  return 0;
};

export const systemCommands: Record<string, Command> = {
  hostname: print(({ guest }) => guest.facts().spec.hostname),
  whoami: print(({ user }) => user),
  id: print(({ user, args }) =>
    args[0] === '-u' ? (user === 'root' ? '0' : '1000') : args[0] === '-un' ? user : (ids[user] ?? user),
  ),
  groups: print(({ user }) => (user === 'root' ? 'root' : 'ubuntu adm sudo')),
  date: print(({ guest }) => new Date(guest.clock.now()).toUTCString()),
  uptime: print(uptime),
  nproc: print(({ guest }) => String(guest.facts().spec.vcpus)),
  free: print(free),
  df: print(diskFree),
  lsblk: print(listBlockDevices),
  uname: print(({ guest, args }) => {
    const all = `Linux ${guest.facts().spec.hostname} ${KERNEL} #45-Ubuntu SMP x86_64 x86_64 x86_64 GNU/Linux`;
    return args[0] === '-a'
      ? all
      : args[0] === '-r'
        ? KERNEL
        : args[0] === '-m'
          ? 'x86_64'
          : args[0] === '-n'
            ? guest.facts().spec.hostname
            : 'Linux';
  }),
  ip: print(
    ({ guest }) => `2: eth0    inet ${guest.facts().privateIp}/8 brd 10.255.255.255 scope global eth0`,
  ),
  'nvidia-smi': nvidiaSmi,
  'cloud-init': cloudInit,
  dpkg: ({ guest, args, out, err }) => {
    const [, name = ''] = args;
    if (isInstalled(guest.facts(), name)) out(`Package: ${name}\nStatus: install ok installed\n`);
    else err(`dpkg-query: package '${name}' is not installed and no information is available\n`);
    return isInstalled(guest.facts(), name) ? 0 : 1;
  },
  poweroff: powerOff,
  halt: powerOff,
  shutdown: (call) => (call.args.includes('-r') ? reboot(call) : powerOff(call)),
  reboot,
  systemctl: (call) => {
    const action = { poweroff: powerOff, reboot }[call.args[0] ?? ''];
    return action === undefined ? 0 : action(call);
  },
};
