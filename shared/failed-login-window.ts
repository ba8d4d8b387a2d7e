/** Failed logins count for so long since the first of them. */
export const FAILED_LOGIN_WINDOW_SECONDS = 15 * 60;
