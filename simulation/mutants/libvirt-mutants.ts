import type { Mutant } from './mutant.ts';

/** Ways in which the core or the libvirt driver lost a machine, its data or the truth about it, as they did once. */
export const libvirtMutants: readonly Mutant[] = [
  {
    id: 'loss-destroys',
    subject: 'libvirt',
    title: 'a machine that was concluded gone is removed when it reappears',
    patches: [
      {
        file: 'src/orchestrator/steps/fail.ts',
        find: "const ordered = as === 'create' ?",
        replace: "const ordered = as !== 'failure' ?",
      },
    ],
  },
  {
    id: 'rowless-destroyed',
    subject: 'libvirt',
    title: 'a machine whose row was lost is removed without a policy that allows it',
    patches: [
      {
        file: 'src/orchestrator/reconciliation/sweep-machines.ts',
        find: 'const mayBeOrphan = await this.#rowless.adopt(machine);',
        replace:
          "await this.#policy.act({ ref: machine.ref, power: machine.power, action: 'reap' });\n      const mayBeOrphan = await this.#rowless.adopt(machine);",
      },
    ],
  },
  {
    id: 'lease-ends-first',
    subject: 'libvirt',
    title: 'a lease ends while its call still runs',
    patches: [
      {
        file: 'src/orchestrator/platform/call-platform.ts',
        find: 'if (inTime === undefined) controller.abort();',
        replace: '',
      },
      {
        file: 'src/orchestrator/platform/call-platform.ts',
        find: 'inTime ?? (await whileLeaseIsKept(context, lease, answering));',
        replace: "inTime ?? { problem: 'no answer in time' };",
      },
    ],
  },
  {
    id: 'found-by-name',
    subject: 'libvirt',
    title: 'a machine is looked up by its name, which a rename changes',
    patches: [
      {
        file: 'src/drivers/libvirt/fleet.ts',
        find: 'const uuid = uuidOf(ref);\n  try {',
        replace: 'const uuid: string = ref;\n  try {',
      },
    ],
  },
  {
    id: 'created-over',
    subject: 'libvirt',
    title: 'a create, even a late one, deletes an existing disk of the same name',
    patches: [
      {
        file: 'src/drivers/libvirt/change.ts',
        find: 'this.#limits = call && {\n      resource,\n      fence: call.fence,',
        replace:
          'this.#limits = call && {\n      resource: resource.concat(String(call.fence)) as never,\n      fence: call.fence,',
      },
      {
        file: 'src/drivers/libvirt/create.ts',
        find: 'if (left.length > 0) {',
        replace:
          "for (const file of left) await platform.change.virsh(host, ['vol-delete', '--pool', host.options.pool, '--', file]);\n  if (left.length > 99) {",
      },
    ],
  },
  {
    id: 'copy-counted',
    subject: 'libvirt',
    title: 'a copy of a machine counts as the machine because it has its tag',
    patches: [
      {
        file: 'src/drivers/libvirt/domain-xml.ts',
        find: 'mark !== undefined && uuid === uuidOf(mark.ref);',
        replace: "mark !== undefined && uuid !== '';",
      },
    ],
  },
];
