import { type JsonObject, stringsField } from '../../text/json.ts';
import type { Placement } from '../placement.ts';
import type { Session } from '../session.ts';
import { partsOf, script } from './printed.ts';

/** Files of the first boot. Not in /tmp, which a boot may empty. */
const FOLDER = '/var/lib/berth-conformance';

/** Text that must arrive unchanged: quotes, shell and template syntax, a two-byte letter. */
export const WRITTEN_CONTENT =
  'berth conformance: "quoted" \'twice\' $HOME `id` {{ name }} %d\n  indented: grün\n';
export const WRITTEN_FILE = `${FOLDER}/written`;

/** 20 kB, more than a page or an IP packet. */
const large = 'nineteen characters\n'.repeat(1000);
const content = 'berth conformance\n';
const owner = 'daemon:daemon';

/** Files with modes that a umask, or a reader of decimal numbers, would change. */
export const OWNED_FILES = {
  owned: { path: `${FOLDER}/owned`, content, owner, permissions: '0604' },
  everyone: { path: `${FOLDER}/everyone`, content, owner, permissions: '0666' },
  large: { path: `${FOLDER}/large`, content: large, owner, permissions: '0775' },
};

export const RUN_WORD = 'berth-conformance-ran';
export const RUN_FILE = `${FOLDER}-ran`;
/** Each of several commands appends a line to this file. The one before the last word fails. */
export const LIST_FILE = `${FOLDER}-list`;
export const LIST_WORDS = ['one', 'two', 'after-a-failure'] as const;

/** Prints what the first boot wrote. */
const READ_FIRST_BOOT = script({
  written: `cat ${WRITTEN_FILE}`,
  ...Object.fromEntries(
    Object.entries(OWNED_FILES).map(([name, { path }]) => [name, `stat -c %a:%U:%G ${path}`]),
  ),
  content: `cat ${OWNED_FILES.owned.path}`,
  bytes: `wc -c ${OWNED_FILES.large.path}`,
  ran: `cat ${RUN_FILE}`,
  list: `cat ${LIST_FILE}`,
});

/** The offer's last image with a shell, which is least likely its default. Undefined if it lists none. */
function imageOf({ offer }: Placement): string | undefined {
  return stringsField(offer, 'os_options').findLast((image) => !/windows/i.test(image));
}

/** The fields of a create that control the first boot, as far as the offer supports them; without 20 kB if `isSmall`. */
export function firstBootFields(placement: Placement, isSmall = false): JsonObject {
  const image = imageOf(placement);
  const isSupported = placement.offer['supports_cloud_init'] === true;
  return {
    ...(image !== undefined && { operating_system_image: image }),
    ...(isSupported && { cloud_init: { ...cloudInit, write_files: filesToWrite(isSmall) } }),
  };
}

function filesToWrite(isSmall: boolean) {
  const { large: file, ...others } = OWNED_FILES;
  return [
    { path: WRITTEN_FILE, content: WRITTEN_CONTENT, permissions: '0644' },
    ...Object.values(others),
    isSmall ? { ...file, content } : file,
  ];
}

const cloudInit = {
  runcmd: [
    `echo ${RUN_WORD} > ${RUN_FILE}`,
    `echo ${LIST_WORDS[0]} >> ${LIST_FILE}`,
    `echo ${LIST_WORDS[1]} >> ${LIST_FILE}`,
    'false',
    `echo ${LIST_WORDS[2]} >> ${LIST_FILE}`,
  ],
};

/** How often to look for what the first boot may still write. */
const LOOKS = 30;
/** … and for a command after one that failed, once those before it have run. */
const LOOKS_AFTER_FAILURE = 5;

export const FIRST_BOOT = 'companion/first-boot';

/** Looks at what the first boot of the second instance wrote, until all of it is there. */
export async function lookAtFirstBoot(
  session: Session,
  shown: JsonObject,
  placement: Placement,
): Promise<void> {
  const { configurationId, offer } = placement;
  if (imageOf(placement) === undefined)
    session.skip(
      ['companion/image'],
      `the offer ${configurationId} lists no os_options, or only Windows`,
      'os_options',
    );
  if (offer['supports_cloud_init'] !== true) {
    const reason = `the offer ${configurationId} has supports_cloud_init false (--offer chooses another)`;
    return session.skip([FIRST_BOOT], reason, 'cloud-init');
  }
  let left = LOOKS;
  for (;;) {
    const login = await session.login(FIRST_BOOT, shown, 'first', { command: READ_FIRST_BOOT });
    const parts = partsOf(login);
    const lines = parts.get('list')?.split('\n') ?? [];
    const isWritten = ['written', 'content', 'bytes', 'ran'].every((name) => parts.get(name));
    if (isWritten && lines.includes(LIST_WORDS[2])) return;
    if (isWritten && lines.includes(LIST_WORDS[1])) left = Math.min(left, LOOKS_AFTER_FAILURE);
    if (--left === 0) return;
    await session.sleep(session.settings.pollIntervalMs);
  }
}
