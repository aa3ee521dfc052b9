import { type JsonObject, textsField } from '../../text/json.ts';
import type { Placement } from '../placement.ts';

/** What is asked of the first boot, and how it is looked at afterwards. Not in /tmp, which a boot may empty. */
const FOLDER = '/var/lib/berth-conformance';

/** Plain text that must arrive as it is: quotes, what a shell or a template would expand, and a letter of two bytes. */
export const WRITTEN_CONTENT =
  'berth conformance: "quoted" \'twice\' $HOME `id` {{ name }} %d\n  indented: grün\n';
export const WRITTEN_FILE = `${FOLDER}/written`;

export const OWNED_FILE = `${FOLDER}/owned`;
export const OWNED_FILE_OWNER = 'daemon:daemon';
export const OWNED_FILE_PERMISSIONS = '0604';

export const RUN_WORD = 'berth-conformance-ran';
export const RUN_FILE = `${FOLDER}-ran`;

/** The last of the offer's images, less likely to be its default, with a shell; undefined where it lists none. */
export function imageOf({ offer }: Placement): string | undefined {
  return textsField(offer, 'os_options').findLast((image) => !/windows/i.test(image));
}

/** The fields of a create that say what the first boot is to do, as far as the offer supports it. */
export function firstBootFields(placement: Placement): JsonObject {
  const image = imageOf(placement);
  const isSupported = placement.offer['supports_cloud_init'] === true;
  return {
    ...(image === undefined ? {} : { operating_system_image: image }),
    ...(isSupported ? { cloud_init: cloudInit } : {}),
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
