import { type JsonObject, stringsField } from '../../text/json.ts';
import type { Placement } from '../placement.ts';

/** Files of the first boot. Not in /tmp, which a boot may empty. */
const FOLDER = '/var/lib/berth-conformance';

/** Text that must arrive unchanged: quotes, shell and template syntax, a two-byte letter. */
export const WRITTEN_CONTENT =
  'berth conformance: "quoted" \'twice\' $HOME `id` {{ name }} %d\n  indented: grün\n';
export const WRITTEN_FILE = `${FOLDER}/written`;

export const OWNED_FILE = `${FOLDER}/owned`;
export const OWNED_FILE_OWNER = 'daemon:daemon';
export const OWNED_FILE_PERMISSIONS = '0604';

export const RUN_WORD = 'berth-conformance-ran';
export const RUN_FILE = `${FOLDER}-ran`;

/** The offer's last image with a shell, which is least likely its default. Undefined if it lists none. */
export function imageOf({ offer }: Placement): string | undefined {
  return stringsField(offer, 'os_options').findLast((image) => !/windows/i.test(image));
}

/** The fields of a create that control the first boot, as far as the offer supports them. */
export function firstBootFields(placement: Placement): JsonObject {
  const image = imageOf(placement);
  const isSupported = placement.offer['supports_cloud_init'] === true;
  return {
    ...(image !== undefined && { operating_system_image: image }),
    ...(isSupported && { cloud_init: cloudInit }),
  };
}

const cloudInit = {
  write_files: [
    { path: WRITTEN_FILE, content: WRITTEN_CONTENT, permissions: '0644' },
    {
      path: OWNED_FILE,
      content: 'berth conformance\n',
      owner: OWNED_FILE_OWNER,
      permissions: OWNED_FILE_PERMISSIONS,
    },
  ],
  runcmd: [`echo ${RUN_WORD} > ${RUN_FILE}`],
};
