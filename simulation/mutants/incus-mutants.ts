import type { Mutant } from './mutant.ts';

/** R1 to I2 are ways in which a driver of Incus loses data or a machine, as it did once. */
export const incusMutants: readonly Mutant[] = [
  {
    id: 'R1',
    subject: 'incus',
    title: 'the copy of a moved volume counts as complete while Incus is still making it',
    patches: [
      {
        file: 'src/drivers/incus/volume-copies.ts',
        find: 'if (isRunning || (await isVolumeBusy(platform, spec.ref)))',
        replace: 'if (isRunning && named.length === 0)',
      },
      {
        file: 'src/drivers/incus/volume-copies.ts',
        find: 'return operation?.status_code === 200 && volume !== undefined',
        replace: 'return volume !== undefined',
      },
    ],
  },
  {
    id: 'R2',
    subject: 'incus',
    title: 'removing the original of a moved volume also removes its replacement',
    patches: [
      {
        file: 'src/drivers/incus/volumes.ts',
        find: '(await volumesNamed(platform, ref)).filter((one) => isOurs(one) || isIncomplete(one));',
        replace:
          '(await readVolumes(platform)).filter((one) => one.name.startsWith(ref) && (isOurs(one) || isIncomplete(one)));',
      },
      {
        file: 'src/drivers/incus/volumes.ts',
        find: 'for (const name of new Set(found.flatMap(usersOf))) {\n    const step = await detachFrom(platform, ref, name);',
        replace:
          'for (const [of, name] of found.flatMap((one) => usersOf(one).map((user) => [one.name, user]))) {\n    const step = await detachFrom(platform, of as string, name as string);',
      },
      {
        file: 'src/drivers/incus/volumes.ts',
        find: 'for (const { location } of found) {',
        replace: 'for (const { name: ref, location } of found) {',
      },
    ],
  },
  {
    id: 'I1',
    subject: 'incus',
    title:
      'a machine that Incus moves counts as gone between its deletion on one member and its renaming on the other',
    patches: [
      {
        file: 'src/drivers/incus/identity.ts',
        find: 'export function identify(ref: OwnerRef, marked: readonly Instance[]): Identified {\n',
        replace:
          'export function identify(ref: OwnerRef, every: readonly Instance[]): Identified {\n  const marked = every.filter((one) => !isTemporary(one));\n',
      },
      {
        file: 'src/drivers/incus/finder.ts',
        find: 'return moving && {',
        replace: 'return undefined && moving && {',
      },
    ],
  },
  {
    id: 'I2',
    subject: 'incus',
    title: 'a create deletes what an interrupted one left, and makes it again under the same name',
    patches: [
      {
        file: 'src/drivers/incus/create.ts',
        find: "  return unfinished('its creation was interrupted, and its disk may be incomplete');",
        replace:
          "  await api.client.send('DELETE', '/1.0/instances/' + name, { call: platform.call } as never);\n  return underWay('make');",
      },
    ],
  },
];
