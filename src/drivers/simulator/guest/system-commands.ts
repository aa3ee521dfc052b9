import { createHash } from 'node:crypto';
import type { Command, CommandCall, GuestFacts } from './guest.ts';

const CLOUD_INIT_POLL_MS = 250;
/** Poll limit of `cloud-init status --wait`: one hour. */
const MOST_CLOUD_INIT_POLLS = 14_400;
const KERNEL = '6.8.0-45-generic';
const ids: Record<string, string> = {
  root: 'uid=0(root) gid=0(root) groups=0(root)',
  ubuntu: 'uid=1000(ubuntu) gid=1000(ubuntu) groups=1000(ubuntu),4(adm),27(sudo)',
};

function print(make: (facts: GuestFacts, call: CommandCall) => string): Command {
  return async (call) => {
    call.out(`${make(await call.guest.facts(), call)}\n`);
    return 0;
  };
}

function uptime({ now, bootedAt }: GuestFacts): string {
  const minutes = Math.floor((now - bootedAt) / 60_000);
  const hours = Math.floor(minutes / 60);
  const up = hours === 0 ? `${minutes} min` : `${hours}:${String(minutes % 60).padStart(2, '0')}`;
  return ` ${new Date(now).toISOString().slice(11, 19)} up ${up},  1 user,  load average: 0.00, 0.00, 0.00`;
}

/** Output of free(1) -g: slightly less than the memory sold, as in a real guest. */
function free({ spec }: GuestFacts): string {
  const total = Math.max(1, Math.floor(spec.memoryGb * 0.98));
  const column = (value: number): string => String(value).padStart(12);
  return [
    '               total        used        free      shared  buff/cache   available',
    `Mem:    ${[total, 0, total, 0, 0, total].map(column).join('')}`,
    `Swap:   ${[0, 0, 0].map(column).join('')}`,
  ].join('\n');
}

function diskFree({ spec, volumes }: GuestFacts): string {
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

function listBlockDevices({ spec, volumes }: GuestFacts): string {
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

/** The command nvidia-smi. It is absent in a guest without GPUs, which has no driver. */
const nvidiaSmi: Command = async ({ guest, args, out, err }) => {
  const gpus = gpusOf(await guest.facts());
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

/** Runs `act` for root; for other users prints polkit's refusal. */
function asRoot(what: string, act: (call: CommandCall) => Promise<void>): Command {
  return async (call) => {
    if (call.user === 'root') {
      await act(call);
      return 0;
    }
    call.err(`Call to ${what} failed: Interactive authentication required.\n`);
    return 1;
  };
}

const cloudInit: Command = async ({ guest, args, out, err, signal }) => {
  if (args[0] !== 'status') {
    err('usage: cloud-init status [--wait]\n');
    return 2;
  }
  let { cloudInit: status } = await guest.facts();
  for (let polls = 0; args.includes('--wait') && status === 'running'; polls++) {
    if (polls >= MOST_CLOUD_INIT_POLLS || (await guest.sleep(CLOUD_INIT_POLL_MS, signal)) !== 0) return 130;
    ({ cloudInit: status } = await guest.facts());
  }
  out(`status: ${status}\n`);
  return 0;
};

function kernelName({ spec }: GuestFacts, [option = '']: readonly string[]): string {
  const names: Record<string, string> = {
    '-a': `Linux ${spec.hostname} ${KERNEL} #45-Ubuntu SMP x86_64 x86_64 x86_64 GNU/Linux`,
    '-r': KERNEL,
    '-m': 'x86_64',
    '-n': spec.hostname,
  };
  return names[option] ?? 'Linux';
}

export const systemCommands: Record<string, Command> = {
  hostname: print(({ spec }) => spec.hostname),
  whoami: print((_, { user }) => user),
  id: print((_, { user }) => ids[user] ?? user),
  uptime: print(uptime),
  nproc: print(({ spec }) => String(spec.vcpus)),
  free: print(free),
  df: print(diskFree),
  lsblk: print(listBlockDevices),
  uname: print((facts, { args }) => kernelName(facts, args)),
  'nvidia-smi': nvidiaSmi,
  'cloud-init': cloudInit,
  poweroff: asRoot('PowerOff', ({ guest }) => guest.powerOff()),
  reboot: asRoot('Reboot', ({ guest }) => guest.reboot()),
};
